// Declares the one entry of libhdps_parquet.so, in plain C so that the module and the programs that
// load it need not share a compiler.
#pragma once

#include <cstdint>

#include "worker/data/columnar/arrow_abi.h"

extern "C" {

// The bytes of a file that the caller has opened.
struct HdpsFileBytes {
  void* file;    // Is given to read_at.
  int64_t size;  // In bytes.
  // Reads up to `bytes` of them from `offset` on; returns how many, 0 past the end, -1 for an
  // error, which the caller keeps.
  int64_t (*read_at)(void* file, int64_t offset, int64_t bytes, void* to);
};

// What to read of a Parquet file.
struct HdpsParquetRead {
  const int32_t* columns;  // Indices of columns, ascending; null: all columns.
  int64_t num_columns;
  int32_t first_group, end_group;  // Row groups [first_group, end_group); none: types alone.
  int64_t batch_rows;              // At most so many in a batch; a batch may have fewer.
  // Is called with the rows of each row group of the file, in order, before anything is read.
  void (*on_group)(void* context, int64_t rows);
  void* context;
};

// Opens a stream of the rows. It reads as it is asked, a page of each column at a time; `file` must
// live until it is released. Returns 0, or writes why not into `error` as a text that ends with 0.
using HdpsReadParquetFunction = int(const struct HdpsFileBytes* file,
                                    const struct HdpsParquetRead* read,
                                    struct ArrowArrayStream* out, char* error, int64_t error_bytes);
}  // extern "C"

namespace hdps {

// The name carries the version of this interface: a module of another one has no such entry.
inline constexpr const char* kReadParquetName = "HdpsReadParquet1";
inline constexpr const char* kParquetModule = "libhdps_parquet.so";

}  // namespace hdps
