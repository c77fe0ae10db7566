// Lists a followed entry, and leaves out what is no data yet.
#include "common/job/followed_data.h"

#include <algorithm>

#include "common/job/data_paths.h"
#include "common/job/spec/data_spec.h"

namespace hdps {
namespace {

bool IsUnfinished(const std::string& path) {
  return std::ranges::any_of(kUnfinishedEndings,
                             [&](const char* ending) { return path.ends_with(ending); });
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

}  // namespace

std::string EndMarkerOf(FileSystem& files, const DataSpec& data) {
  if (data.follow_until.empty()) return "";
  const std::string& entry = data.train[0];
  if (files.List(entry).ok()) return JoinPath(entry, data.follow_until);
  return FolderOf(entry) + data.follow_until;
}

Result<std::vector<std::string>> FollowedFilesOf(FileSystem& files, const DataSpec& data) {
  HDPS_ASSIGN_OR_RETURN(std::vector<std::string> found, FilesOf(files, data.train[0]));
  const std::string marker = EndMarkerOf(files, data);
  // A file that the job names is followed whatever its name.
  if (found != data.train) {
    std::erase_if(found,
                  [&](const std::string& path) { return path == marker || IsUnfinished(path); });
  }
  return found;
}

Result<std::vector<std::string>> TrainingFiles(FileSystem& files, const DataSpec& data) {
  if (!data.follow) return data.train;
  return FollowedFilesOf(files, data);
}

}  // namespace hdps
