// Parses and prints the list of allowed keys, and finds keys in it.
#include "common/net/keys/key_ring.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include "common/base/outside_text.h"

namespace hdps {
namespace {

constexpr size_t kNameCharactersMax = 64;
constexpr size_t kKeysMax = 10'000;

Result<AllowedKey> ParseLine(const std::string& line) {
  const auto wrong = [](const std::string& what) { return Status(Code::kInvalidArgument, what); };
  std::istringstream words(line);
  std::string role, word, rest;
  AllowedKey key;
  words >> role >> key.name >> key.public_key >> word >> rest;
  const std::optional<KeyRole> known = KeyRoleOf(role);
  if (!known) {
    return wrong("\"" + EscapeUntrusted(role, 64) +
                 "\" is no role; write scheduler, server, worker, reader, admin or serving");
  }
  key.role = *known;
  HDPS_RETURN_IF_ERROR(CheckKeyName(key.name));
  if (!IsCurveKey(key.public_key)) {
    return wrong("\"" + EscapeUntrusted(key.public_key, 64) +
                 "\" is no public key; write its 40 characters in Z85");
  }
  if (!rest.empty() || (!word.empty() && word != "revoked")) {
    return wrong("\"" + EscapeUntrusted(word + rest, 64) +
                 "\" follows the key; write revoked there, or nothing");
  }
  key.revoked = !word.empty();
  return key;
}

}  // namespace

std::optional<KeyRole> KeyRoleOf(std::string_view word) {
  for (const auto& [role, its_word] : WordsOf(KeyRole{})) {
    if (its_word == word) return role;
  }
  return std::nullopt;
}

Status CheckKeyName(const std::string& name) {
  const auto fits = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  if (!name.empty() && name.size() <= kNameCharactersMax && name.front() != '.' &&
      std::ranges::all_of(name, fits)) {
    return {};
  }
  return Status(Code::kInvalidArgument,
                "\"" + EscapeUntrusted(name, 80) +
                    "\" is no name of a key; write up to 64 letters, digits, '-', '_' and '.', "
                    "which does not come first");
}

Result<std::vector<AllowedKey>> ParseAllowedKeys(const std::string& text, const std::string& path) {
  std::vector<AllowedKey> keys;
  std::set<std::string> names, publics;
  std::istringstream lines(text);
  std::string line;
  for (size_t number = 1; std::getline(lines, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos || line.front() == '#') continue;
    const auto wrong = [&](const std::string& what) {
      return Status(Code::kInvalidArgument, path + ":" + std::to_string(number) + ": " + what);
    };
    const Result<AllowedKey> key = ParseLine(line);
    if (!key.ok()) return wrong(key.status().message());
    if (!names.insert(key->name).second) return wrong("there is a key " + key->name + " already");
    if (!publics.insert(key->public_key).second) {
      return wrong("the key of " + key->name + " stands in the list already");
    }
    if (keys.size() == kKeysMax) return wrong("a list has at most 10000 keys");
    keys.push_back(*key);
  }
  return keys;
}

std::string PrintAllowedKeys(const std::vector<AllowedKey>& keys) {
  std::string text = "# ROLE NAME PUBLIC_KEY [revoked]: written by hdps keygen\n";
  for (const AllowedKey& key : keys) {
    text += std::string(WordOf(key.role)) + " " + key.name + " " + key.public_key +
            (key.revoked ? " revoked\n" : "\n");
  }
  return text;
}

const AllowedKey* KeyRing::Find(const std::string& public_key) const {
  const auto found = std::ranges::find(allowed, public_key, &AllowedKey::public_key);
  return found == allowed.end() ? nullptr : &*found;
}

bool KeyRing::Allows(const std::string& public_key) const {
  const AllowedKey* key = Find(public_key);
  return key != nullptr && !key->revoked;
}

std::vector<std::string> KeyRing::KeysToDial(KeyRole role) const {
  std::vector<std::string> keys;
  for (auto key = allowed.rbegin(); key != allowed.rend(); ++key) {
    if (key->role == role && !key->revoked) keys.push_back(key->public_key);
  }
  return keys;
}

}  // namespace hdps
