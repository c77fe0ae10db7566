// Prevents a second run in the folder of a run that is alive.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// Creates --out and locks OUT/lock for `program`, this process. Errors: kInvalidArgument names
// process and host of the holder, or says why the folder cannot be used. `files` must outlive the
// lock.
Result<std::unique_ptr<FileLock>> LockRunFolder(FileSystem& files, const std::string& program,
                                                const std::string& out);

}  // namespace hdps
