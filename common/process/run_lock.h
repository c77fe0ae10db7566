// Keeps a second run out of the folder of one that lives.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// Makes --out and takes OUT/lock for `program`, this process. kInvalidArgument names process and
// host of who has it, or why the folder cannot be used. `files` must outlive the lock.
Result<std::unique_ptr<FileLock>> LockRunFolder(FileSystem& files, const std::string& program,
                                                const std::string& out);

}  // namespace hdps
