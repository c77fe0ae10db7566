// An optional interface of file systems: tells which file a path leads to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// Identifies the file that a path leads to, whatever the spelling and through all links.
struct FileIdentity {
  uint64_t device = 0, number = 0;
  bool plain = true;      // A regular file, not a pipe, a terminal or another device.
  std::string path = {};  // Resolved, without symbolic links; hard links give others.
  bool operator==(const FileIdentity& other) const {
    return device == other.device && number == other.number;
  }
};

// Implemented by a FileSystem that knows identities; find it by dynamic_cast.
class FileIdentities {
 public:
  virtual ~FileIdentities() = default;
  // Errors: kNotFound if there is no such file.
  virtual Result<FileIdentity> IdentityOf(const std::string& path) = 0;
  // Is true if the path itself is a symbolic link, wherever it leads.
  virtual bool IsLink(const std::string& path) = 0;
};

// Returns kNotFound also if `files` does not know identities.
inline Result<FileIdentity> IdentityOf(FileSystem& files, const std::string& path) {
  auto* const known = dynamic_cast<FileIdentities*>(&files);
  if (known != nullptr) return known->IdentityOf(path);
  return Status(Code::kNotFound, "nothing is known of " + path);
}

// Returns false also if `files` does not know identities.
inline bool IsLink(FileSystem& files, const std::string& path) {
  auto* const known = dynamic_cast<FileIdentities*>(&files);
  return known != nullptr && known->IsLink(path);
}

// Is true if a path names an open stream or a device: /dev/stdin, /dev/fd/3, /dev/null,
// /proc/self/fd/3. The operator then means that stream itself. Files deeper in /dev, as in
// /dev/shm, are ordinary files.
inline bool NamesStream(std::string_view path) {
  if (path.starts_with("/proc/") || path.starts_with("/dev/fd/")) return true;
  constexpr std::string_view kDevices = "/dev/";
  return path.starts_with(kDevices) && path.find('/', kDevices.size()) == std::string_view::npos;
}

}  // namespace hdps
