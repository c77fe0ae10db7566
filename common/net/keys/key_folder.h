// The folder with the keys of a job: read at start, and again when it has changed.
//
// DIR/allowed is the list of all keys, DIR/NAME.key the secret half of one. A machine needs the
// list and the secrets of the roles that run there. A secret that others than its owner can read is
// refused, and so is a list or folder that others can write.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"
#include "common/net/keys/key_ring.h"
#include "common/platform/file_system.h"

namespace hdps {

std::string AllowedKeysPath(const std::string& folder);
std::string SecretKeyPath(const std::string& folder, const std::string& name);

// Errors: kInvalidArgument names the path, why it is refused, and the command that repairs it.
Result<std::vector<AllowedKey>> ReadAllowedKeys(FileSystem& files, const std::string& folder);
Result<CurveKeys> ReadSecretKey(FileSystem& files, const std::string& folder,
                                const std::string& name);

// Invariant: ring() holds the last list and the last own key that could be read from the folder.
// Belongs to one thread.
class KeyFolder {
 public:
  // Reads the folder and chooses the own key: the last key of the list that is not revoked and
  // whose secret lies in the folder, of the first of `roles` that has such a key. Errors:
  // kInvalidArgument if there is none.
  static Result<std::shared_ptr<KeyFolder>> Open(std::shared_ptr<FileSystem> files,
                                                 std::string folder, std::vector<KeyRole> roles);

  const KeyRing& ring() const { return ring_; }
  const std::string& path() const { return folder_; }
  // Reads the folder at most once a second. Returns true if ring() has changed.
  bool Refresh(int64_t now_ms);

 private:
  KeyFolder(std::shared_ptr<FileSystem> files, std::string folder, std::vector<KeyRole> roles)
      : files_(std::move(files)), folder_(std::move(folder)), roles_(std::move(roles)) {}
  Result<CurveKeys> FindOwn(const std::vector<AllowedKey>& allowed);

  const std::shared_ptr<FileSystem> files_;
  const std::string folder_;
  const std::vector<KeyRole> roles_;
  KeyRing ring_;
  int64_t looked_ms_ = 0;
  std::string trouble_;  // The last problem that was logged.
};

}  // namespace hdps
