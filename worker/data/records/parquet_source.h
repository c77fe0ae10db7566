// Opens a Parquet file as a source of record batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "worker/data/columnar/column_stream.h"
#include "worker/data/columnar/columns.h"
#include "worker/data/records/parquet_abi.h"

namespace hdps {

// A Parquet file whose footer was read.
//
// Invariant: what is read goes through the FileSystem, at any place of the file, as it is asked
// for.
class ParquetSource {
 public:
  // kInvalidArgument for what is no whole Parquet file, an encrypted one, a pipe, and where the
  // module that reads them is missing; errors of the file are those of `files`.
  static Result<std::unique_ptr<ParquetSource>> Open(FileSystem& files, const std::string& path);
  ~ParquetSource();

  // The columns in the file's order. Types that hdps does not read are kOther.
  const std::vector<ColumnTable::Column>& columns() const { return columns_; }
  const std::vector<uint64_t>& group_rows() const { return group_rows_; }  // Of each row group.
  uint64_t num_rows() const { return num_rows_; }
  uint64_t bytes() const;  // Of the file.

  // Opens a stream of all rows, with these columns in the file's order, in batches of at most
  // `batch_rows`. The source must outlive it. Requires: `columns` ascend.
  Result<std::unique_ptr<ColumnStream>> Rows(const std::vector<int32_t>& columns,
                                             int64_t batch_rows);
  // Returns the error with which reading the file failed, if one did.
  const Status& failed() const;

 private:
  class File;
  ParquetSource(const std::string& path, std::unique_ptr<File> file, HdpsReadParquetFunction* read);
  Result<std::unique_ptr<ColumnStream>> Stream(const std::vector<int32_t>& columns,
                                               int64_t batch_rows, int32_t end_group);

  const std::string path_;
  const std::unique_ptr<File> file_;
  HdpsReadParquetFunction* const read_;
  std::vector<ColumnTable::Column> columns_;
  std::vector<uint64_t> group_rows_;
  uint64_t num_rows_ = 0;  // The sum of group_rows_.
};

// Returns true if the module could not read because it has no key; `why` is what it said.
bool TellsOfEncryption(std::string_view why);
// Returns true if the file begins as a Parquet file does. False, too, for one that cannot be read.
bool IsParquet(FileSystem& files, const std::string& path);

}  // namespace hdps
