// Files of a job by name, by pattern and by folder.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// The files that `path` stands for, sorted:
// - one that is there by this very name: itself;
// - a folder: all files in it but those whose names begin with "." or "_" (hidden ones, _SUCCESS);
//   folders in it are passed over;
// - a pattern with *, ? or [...] in any part of the path: what it matches, folders as above. A *
//   stands for no /, and for no "." at the beginning of a name.
// Empty where there is nothing. A list that cannot be read is an error.
Result<std::vector<std::string>> FilesOf(FileSystem& files, const std::string& path);

bool IsPattern(const std::string& path);

}  // namespace hdps
