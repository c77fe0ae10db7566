// Reads a column as indices into its dictionary, without looking the values up.
#pragma once

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/result.h>
#include <parquet/column_reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace hdps {

// One column of a file whose values all lie in dictionaries, one for each row group.
//
// Invariant: arrays of one row group share one dictionary.
class DictionaryColumn {
 public:
  // Returns null if the column is nested, has values outside of dictionaries in one of the row
  // groups [first_group, end_group), or has a type that is not a text or a plain number.
  static std::unique_ptr<DictionaryColumn> Make(const parquet::FileMetaData& file, int leaf,
                                                int first_group, int end_group);
  virtual ~DictionaryColumn() = default;

  // Type of the arrays: a dictionary with indices of 32 bits.
  const std::shared_ptr<arrow::DataType>& type() const { return type_; }
  virtual arrow::Status BeginGroup(parquet::RowGroupReader& group) = 0;
  // Returns the next rows of the row group. An error if it has fewer.
  virtual arrow::Result<std::shared_ptr<arrow::Array>> Read(int64_t rows) = 0;

 protected:
  DictionaryColumn(int leaf, bool optional, std::shared_ptr<arrow::DataType> type)
      : leaf_(leaf), optional_(optional), type_(std::move(type)) {}

  const int leaf_;
  const bool optional_;  // Cells may be missing.
  const std::shared_ptr<arrow::DataType> type_;
};

}  // namespace hdps
