// The folder with a job's keys: read at start, and again when it has changed.
//
// DIR/allowed is the list of all keys, DIR/NAME.key the secret half of one. A machine needs the
// list and the secrets of the roles that run there. Secrets that others than their owner can read,
// and a list or folder that others can write, are refused.
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

// kInvalidArgument names the path, why it is refused, and the command that mends it.
Result<std::vector<AllowedKey>> ReadAllowedKeys(FileSystem& files, const std::string& folder);
Result<CurveKeys> ReadSecretKey(FileSystem& files, const std::string& folder,
                                const std::string& name);

// Invariant: the list in ring() was once that of the folder, and so was its own key; each stays as
// it was where it cannot be read. Belongs to one thread.
class KeyFolder {
 public:
  // Who we are is the last key of the list, not revoked, whose role is the first of `roles` that
  // has such a key, and whose secret lies in the folder. kInvalidArgument when there is none.
  static Result<std::shared_ptr<KeyFolder>> Open(std::shared_ptr<FileSystem> files,
                                                 std::string folder, std::vector<KeyRole> roles);

  const KeyRing& ring() const { return ring_; }
  const std::string& path() const { return folder_; }
  // Looks once a second. True when ring() is another than before the call.
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
  std::string trouble_;  // The last that was logged.
};

}  // namespace hdps
