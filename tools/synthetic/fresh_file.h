// Creates data files that are never overwritten.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// Creates `path` atomically (CreateAtomically). If it exists, it is kept, and the appended bytes
// are compared with it: the first difference, or another length at Close(), is kInvalidArgument.
Result<std::unique_ptr<WritableFile>> CreateFresh(FileSystem& files, const std::string& path);

}  // namespace hdps
