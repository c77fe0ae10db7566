// Finds and loads libhdps_parquet.so.
#pragma once

#include "common/base/status.h"
#include "worker/data/records/parquet_abi.h"

namespace hdps {

// Returns the module's entry, which stays loaded. It lies beside the program or the Python package,
// or in the folder for modules of an installed one. kInvalidArgument tells how to get it where it
// is missing.
Result<HdpsReadParquetFunction*> LoadParquetReader();

}  // namespace hdps
