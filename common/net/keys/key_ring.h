// The keys of a job as one process sees them: its own, and whose are allowed what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/enum_words.h"
#include "common/base/status.h"
#include "common/net/keys/curve.h"

namespace hdps {

// What the holder of a key may be. A reader pulls rows and asks how the job is; an admin asks that
// and changes it.
enum class KeyRole : uint8_t { kScheduler, kServer, kWorker, kReader, kAdmin };
constexpr auto WordsOf(KeyRole) {
  return EnumWords(KeyRole::kScheduler, "scheduler", KeyRole::kServer, "server", KeyRole::kWorker,
                   "worker", KeyRole::kReader, "reader", KeyRole::kAdmin, "admin");
}
std::optional<KeyRole> KeyRoleOf(std::string_view word);

// One line of the list. A key that was rotated keeps its line under another name, NAME.1, and goes
// on being allowed until it is revoked.
struct AllowedKey {
  KeyRole role = KeyRole::kReader;
  std::string name;  // Letters, digits, '-', '_' and '.': also the name of a file.
  std::string public_key;
  bool revoked = false;
  friend bool operator==(const AllowedKey&, const AllowedKey&) = default;
};

// kInvalidArgument says what a name may be.
Status CheckKeyName(const std::string& name);
// "ROLE NAME KEY [revoked]" a line; '#' begins a remark. No name and no key stands there twice.
// kInvalidArgument names `path`, the line, what stands there and what would be right.
Result<std::vector<AllowedKey>> ParseAllowedKeys(const std::string& text, const std::string& path);
std::string PrintAllowedKeys(const std::vector<AllowedKey>& keys);

// What one process goes by. Its own key may have been revoked since; then others refuse it.
struct KeyRing {
  CurveKeys own;
  std::vector<AllowedKey> allowed;

  // Null where nobody knows it; a revoked key is found.
  const AllowedKey* Find(const std::string& public_key) const;
  bool Allows(const std::string& public_key) const;
  // Public keys that a listener of that role may have, the newest first; no revoked one.
  std::vector<std::string> KeysToDial(KeyRole role) const;
  friend bool operator==(const KeyRing&, const KeyRing&) = default;
};

}  // namespace hdps
