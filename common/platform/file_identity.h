// What some file systems can tell beside the bytes of a file: which file it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// The file that a path leads to, whatever its spelling and behind whatever links.
struct FileIdentity {
  uint64_t device = 0, number = 0;
  bool plain = true;      // Bytes on a disk; a pipe, a terminal or another device else.
  std::string path = {};  // Its own: no link, unless others have the same file by a hard one.
  bool operator==(const FileIdentity& other) const {
    return device == other.device && number == other.number;
  }
};

// A FileSystem that knows identities is one of these too (dynamic_cast tells).
class FileIdentities {
 public:
  virtual ~FileIdentities() = default;
  // kNotFound when there is nothing.
  virtual Result<FileIdentity> IdentityOf(const std::string& path) = 0;
  // Whether the name itself is a symbolic link, wherever it leads.
  virtual bool IsLink(const std::string& path) = 0;
};

// kNotFound as well where nobody can tell.
inline Result<FileIdentity> IdentityOf(FileSystem& files, const std::string& path) {
  auto* const known = dynamic_cast<FileIdentities*>(&files);
  if (known != nullptr) return known->IdentityOf(path);
  return Status(Code::kNotFound, "nothing is known of " + path);
}

// False as well where nobody can tell.
inline bool IsLink(FileSystem& files, const std::string& path) {
  auto* const known = dynamic_cast<FileIdentities*>(&files);
  return known != nullptr && known->IsLink(path);
}

// Whether a path names what is open already, or a device, by its own name: /dev/stdin, /dev/fd/3,
// /dev/null, /proc/self/fd/3. Whoever says so means it; what lies deeper in /dev, as in /dev/shm,
// are files as elsewhere.
inline bool NamesStream(std::string_view path) {
  if (path.starts_with("/proc/") || path.starts_with("/dev/fd/")) return true;
  constexpr std::string_view kDevices = "/dev/";
  return path.starts_with(kDevices) && path.find('/', kDevices.size()) == std::string_view::npos;
}

}  // namespace hdps
