// Resolves the data files of a job: names, patterns and folders.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

struct DataSpec;

// Returns the files that `path` names, sorted:
// - an existing file of this exact name: itself;
// - a folder: all files in it except those whose names begin with "." or "_" (hidden files,
//   _SUCCESS); subfolders are skipped;
// - a pattern with *, ? or [...] in any component of the path: its matches, where a folder counts
//   as above. A * does not match "/", nor a "." at the beginning of a name.
// Returns an empty list if nothing matches. Errors: a folder that cannot be listed.
Result<std::vector<std::string>> FilesOf(FileSystem& files, const std::string& path);

bool IsPattern(const std::string& path);

// Returns true for a path that names a table of a program's memory: "memory:train".
bool NamesTable(const std::string& path);
// Why such a path names no data outside of that program, with the mend.
inline constexpr const char* kWhyNoTable =
    "it names a table in the memory of a program, which only a run inside of that program has; "
    "name "
    "files";

// ---- A log that is followed (data.follow).

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
