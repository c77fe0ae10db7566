// Makes temporary folders, and clears away those of processes that have ended.
#include "common/platform/folders/temporary_folder.h"

#include <glog/logging.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "common/platform/process_watch.h"

namespace hdps {
namespace {

constexpr const char* kOwnerName = "owner";  // The file with its process, as OwnProcessName() says.

// Removes folders whose process has ended. Others' folders cannot be read, and so stay.
void RemoveLeftovers(FileSystem& files, const std::string& parent, const std::string& prefix) {
  constexpr uint64_t kNameBytesMax = 1 << 10;
  const Result<std::vector<std::string>> names = files.List(parent);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (!name.starts_with(prefix + "_")) continue;
    const std::string folder = JoinPath(parent, name);
    const Result<std::string> owner =
        ReadWholeFile(files, JoinPath(folder, kOwnerName), kNameBytesMax);
    if (!owner.ok() || ProcessWatch(*owner).Look() != ProcessState::kEnded) continue;
    const Status removed = files.RemoveAll(folder);
    LOG_IF(WARNING, !removed.ok()) << removed.message();
  }
}

}  // namespace

Result<std::unique_ptr<TemporaryFolder>> TemporaryFolder::Make(FileSystem& files,
                                                               const std::string& prefix) {
  std::error_code error;
  const std::string parent = std::filesystem::temp_directory_path(error).string();
  if (error) {
    return Status(Code::kInvalidArgument,
                  "$TMPDIR is no folder (" + error.message() + "); set it to one, or unset it");
  }
  RemoveLeftovers(files, parent, prefix);
  std::string path = JoinPath(parent, prefix + "_XXXXXX");
  if (::mkdtemp(path.data()) == nullptr) {
    return Status(Code::kIoError, "cannot make a folder below " + parent + ": " +
                                      std::strerror(errno) + "; set $TMPDIR to another");
  }
  std::unique_ptr<TemporaryFolder> folder(new TemporaryFolder(files, path));
  HDPS_RETURN_IF_ERROR(
      WriteFileAtomically(files, JoinPath(path, kOwnerName), OwnProcessName(), Survives::kProcess));
  return folder;
}

TemporaryFolder::~TemporaryFolder() {
  const Status removed = files_.RemoveAll(path_);
  LOG_IF(WARNING, !removed.ok()) << removed.message();
}

uint64_t FreeBytes(const std::string& folder) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  return error ? std::numeric_limits<uint64_t>::max() : space.available;
}

}  // namespace hdps
