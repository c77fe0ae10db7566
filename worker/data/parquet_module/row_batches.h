// Gives the rows of a Parquet file as record batches.
#pragma once

#include <arrow/record_batch.h>
#include <parquet/arrow/reader.h>

#include <memory>

#include "worker/data/records/parquet_abi.h"

namespace hdps {

// Opens a reader of what `read` asks for, which keeps the file. Columns whose values all lie in
// dictionaries come as dictionaries, others as Arrow reads them. Exceptions become errors.
arrow::Result<std::shared_ptr<arrow::RecordBatchReader>> OpenBatches(
    std::unique_ptr<parquet::arrow::FileReader> file, const HdpsParquetRead& read);

}  // namespace hdps
