// Files of data that are made once.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// The file `path`, which is there as a whole or not at all (CreateAtomically). One that is there
// already stays: what is appended is compared with it, and the first other byte, or another length
// at Close(), is kInvalidArgument.
Result<std::unique_ptr<WritableFile>> CreateFresh(FileSystem& files, const std::string& path);

}  // namespace hdps
