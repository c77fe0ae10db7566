// Joins the columns that are read as dictionaries with those that Arrow reads.
#include "worker/data/parquet_module/row_batches.h"

#include <arrow/type.h>
#include <parquet/file_reader.h>
#include <parquet/schema.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "worker/data/parquet_module/dictionary_column.h"

namespace hdps {
namespace {

using arrow::Result;
using arrow::Status;

// A column of the batches, which is an outermost field of the file.
struct OutColumn {
  std::unique_ptr<DictionaryColumn> dictionary;  // Null: it is the next one that Arrow reads.
};

// Invariant: the row groups before group_ were given whole, and left_ rows of the current one are
// left.
class RowBatches : public arrow::RecordBatchReader {
 public:
  RowBatches(std::unique_ptr<parquet::arrow::FileReader> file, const HdpsParquetRead& read)
      : file_(std::move(file)),
        group_(read.first_group),
        end_group_(read.end_group),
        batch_rows_(read.batch_rows) {}

  Status Open(const HdpsParquetRead& read) {
    const parquet::FileMetaData& metadata = *file_->parquet_reader()->metadata();
    const parquet::SchemaDescriptor& schema = *metadata.schema();
    std::shared_ptr<arrow::Schema> all;
    ARROW_RETURN_NOT_OK(file_->GetSchema(&all));
    std::vector<std::shared_ptr<arrow::Field>> fields;
    for (int leaf = 0; leaf < schema.num_columns();) {
      const int field = schema.group_node()->FieldIndex(*schema.GetColumnRoot(leaf));
      const int begin = leaf;
      while (leaf < schema.num_columns() &&
             schema.group_node()->FieldIndex(*schema.GetColumnRoot(leaf)) == field) {
        ++leaf;
      }
      if (read.columns != nullptr &&
          !std::binary_search(read.columns, read.columns + read.num_columns, field)) {
        continue;
      }
      fields.push_back(all->field(field));
      if (group_ == end_group_) continue;
      OutColumn& column = columns_.emplace_back();
      column.dictionary = DictionaryColumn::Make(metadata, begin, group_, end_group_);
      if (column.dictionary != nullptr) {
        fields.back() = fields.back()->WithType(column.dictionary->type());
      } else {
        for (int of_field = begin; of_field < leaf; ++of_field) others_.push_back(of_field);
      }
    }
    schema_ = arrow::schema(std::move(fields));
    return Status::OK();
  }

  std::shared_ptr<arrow::Schema> schema() const override { return schema_; }
  Status ReadNext(std::shared_ptr<arrow::RecordBatch>* batch) override {
    try {
      ARROW_RETURN_NOT_OK(Next(batch));
      // Whoever takes the batch cannot see how long its buffers are.
      return *batch == nullptr ? Status::OK() : (*batch)->Validate();
    } catch (const std::exception& error) {
      return Status::IOError(error.what());
    }
  }

 private:
  Status BeginGroup() {
    parquet::ParquetFileReader& file = *file_->parquet_reader();
    left_ = file.metadata()->RowGroup(group_)->num_rows();
    if (left_ < 0) return Status::Invalid("row group ", group_, " has ", left_, " rows");
    of_group_ = file.RowGroup(group_);
    for (OutColumn& column : columns_) {
      if (column.dictionary == nullptr) continue;
      ARROW_RETURN_NOT_OK(column.dictionary->BeginGroup(*of_group_));
    }
    of_others_ = nullptr;
    if (!others_.empty()) {
      ARROW_ASSIGN_OR_RAISE(of_others_, file_->GetRecordBatchReader({group_}, others_));
    }
    ++group_;
    return Status::OK();
  }

  Status Next(std::shared_ptr<arrow::RecordBatch>* batch) {
    *batch = nullptr;
    while (left_ == 0) {
      if (group_ == end_group_) return Status::OK();
      ARROW_RETURN_NOT_OK(BeginGroup());
    }
    int64_t rows = std::min(left_, batch_rows_);
    std::shared_ptr<arrow::RecordBatch> others;
    if (of_others_ != nullptr) {
      ARROW_RETURN_NOT_OK(of_others_->ReadNext(&others));
      if (others == nullptr || others->num_rows() > left_) {
        return Status::Invalid("a column has other rows than the footer tells");
      }
      rows = others->num_rows();
    }
    std::vector<std::shared_ptr<arrow::Array>> arrays;
    int next = 0;
    for (OutColumn& column : columns_) {
      if (column.dictionary == nullptr) {
        arrays.push_back(others->column(next++));
        continue;
      }
      ARROW_ASSIGN_OR_RAISE(auto array, column.dictionary->Read(rows));
      arrays.push_back(std::move(array));
    }
    left_ -= rows;
    *batch = arrow::RecordBatch::Make(schema_, rows, std::move(arrays));
    return Status::OK();
  }

  const std::unique_ptr<parquet::arrow::FileReader> file_;
  int group_;  // The next one.
  const int end_group_;
  const int64_t batch_rows_;
  std::vector<OutColumn> columns_;  // [columns of schema_]; none if no row group is read.
  std::vector<int> others_;         // Leaves of the columns that Arrow reads.
  std::shared_ptr<arrow::Schema> schema_;
  int64_t left_ = 0;
  std::shared_ptr<parquet::RowGroupReader> of_group_;    // The current one.
  std::shared_ptr<arrow::RecordBatchReader> of_others_;  // Of the row group.
};

}  // namespace

Result<std::shared_ptr<arrow::RecordBatchReader>> OpenBatches(
    std::unique_ptr<parquet::arrow::FileReader> file, const HdpsParquetRead& read) {
  auto batches = std::make_shared<RowBatches>(std::move(file), read);
  ARROW_RETURN_NOT_OK(batches->Open(read));
  return std::shared_ptr<arrow::RecordBatchReader>(std::move(batches));
}

}  // namespace hdps
