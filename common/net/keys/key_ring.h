// The keys of a job as one process sees them: its own key, and the list of allowed keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/enum_words.h"
#include "common/base/status.h"
#include "common/net/keys/curve.h"

namespace hdps {

// The role of the holder of a key. A reader pulls rows and asks for the status of the job and for
// predictions; an admin asks for the status and changes the job; a serving process gives
// predictions and is no member of the job.
enum class KeyRole : uint8_t { kScheduler, kServer, kWorker, kReader, kAdmin, kServing };
constexpr auto WordsOf(KeyRole) {
  return EnumWords(KeyRole::kScheduler, "scheduler", KeyRole::kServer, "server", KeyRole::kWorker,
                   "worker", KeyRole::kReader, "reader", KeyRole::kAdmin, "admin",
                   KeyRole::kServing, "serving");
}
std::optional<KeyRole> KeyRoleOf(std::string_view word);

// One line of the list. A rotated key keeps its line under another name, NAME.1, and stays allowed
// until it is revoked.
struct AllowedKey {
  KeyRole role = KeyRole::kReader;
  std::string name;  // Letters, digits, '-', '_' and '.', as it names a file.
  std::string public_key;
  bool revoked = false;
  friend bool operator==(const AllowedKey&, const AllowedKey&) = default;
};

// Errors: kInvalidArgument says what a name may be.
Status CheckKeyName(const std::string& name);
// Parses the list: one "ROLE NAME KEY [revoked]" a line; '#' begins a comment. Each name and each
// key may occur once. Errors: kInvalidArgument names `path`, the line, what stands there and what
// would be right.
Result<std::vector<AllowedKey>> ParseAllowedKeys(const std::string& text, const std::string& path);
std::string PrintAllowedKeys(const std::vector<AllowedKey>& keys);

// The keys that one process uses. Its own key may have been revoked since; then others refuse it.
struct KeyRing {
  CurveKeys own;
  std::vector<AllowedKey> allowed;

  // Returns the entry of a key, also of a revoked one; null if the list has none.
  const AllowedKey* Find(const std::string& public_key) const;
  bool Allows(const std::string& public_key) const;
  // Returns the public keys that a listener of `role` may have, the newest first, without revoked
  // ones.
  std::vector<std::string> KeysToDial(KeyRole role) const;
  friend bool operator==(const KeyRing&, const KeyRing&) = default;
};

}  // namespace hdps
