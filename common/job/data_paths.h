// Resolves the data files of a job: names, patterns and folders.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

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

}  // namespace hdps
