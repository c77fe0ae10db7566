// One row of a checkpoint, in words.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

enum class WhichCheckpoint : uint8_t;

// `which_row`: TABLE:KEY; a key is its number, or FEATURE=VALUE as the data have it.
// kInvalidArgument names what is not there, and what is.
Status PrintRow(FileSystem& files, const std::string& path, WhichCheckpoint which,
                const std::string& which_row);

}  // namespace hdps
