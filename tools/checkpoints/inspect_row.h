// Prints one row of a checkpoint in words.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

enum class WhichCheckpoint : uint8_t;

// Prints the row that `which_row` names as TABLE:KEY. The key is a number, or FEATURE=VALUE as it
// stands in the data. A kInvalidArgument names what is missing and what there is instead.
Status PrintRow(FileSystem& files, const std::string& path, WhichCheckpoint which,
                const std::string& which_row);

}  // namespace hdps
