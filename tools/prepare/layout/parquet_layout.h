// Recognizes the columns of a Parquet file by their types.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "tools/prepare/data_layout.h"

namespace hdps {

// Reads the names and types of the columns. Columns of types that hdps does not read are left out,
// with a note each. Returns kInvalidArgument for a file that cannot be read or has no rows.
Result<DataLayout> TellParquet(FileSystem& files, const std::string& path);

}  // namespace hdps
