// Finds the files of a log that is followed (data.follow).
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

struct DataSpec;

// Returns the files that a followed job trains on as far as they are there now, in the order of
// their names: those of FilesOf() except the marker, and except names that end as those of files
// that are still being written do (kUnfinishedEndings). Requires: data.follow, one entry.
Result<std::vector<std::string>> FollowedFilesOf(FileSystem& files, const DataSpec& data);

// Returns the files of data.train: the paths there, or those of FollowedFilesOf().
Result<std::vector<std::string>> TrainingFiles(FileSystem& files, const DataSpec& data);

// Returns the path of the file that says that no more rows come; empty if the job names none.
std::string EndMarkerOf(FileSystem& files, const DataSpec& data);

inline constexpr const char* kUnfinishedEndings[] = {
    ".tmp", ".temp", ".part", ".partial", ".inprogress", ".filepart", "~"};

}  // namespace hdps
