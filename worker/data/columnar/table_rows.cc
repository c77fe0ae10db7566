// Adds rows of a table to a batch, as a reader of files does.
#include "worker/data/columnar/table_rows.h"

#include <glog/logging.h>

#include <utility>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/columnar/table_files.h"
#include "worker/data/formats/row_adder.h"

namespace hdps {

TableRows::TableRows(std::shared_ptr<const ColumnTable> table, std::unique_ptr<RowAdder> rows)
    : table_(std::move(table)), rows_(std::move(rows)) {}

TableRows::~TableRows() = default;

Result<std::unique_ptr<TableRows>> TableRows::Make(const DataSpec& data,
                                                   std::shared_ptr<const ColumnTable> table,
                                                   const std::string& name) {
  DataSpec of_table = data;
  of_table.tables = {{name, table}};
  of_table.max_bad_rows = 0;
  HDPS_RETURN_IF_ERROR(CheckTable(of_table, {name}));
  HDPS_ASSIGN_OR_RETURN(
      std::unique_ptr<RowAdder> rows,
      RowAdder::Make(of_table, {name}, {{"", kLabelsNotRead}}, nullptr, BadRows::kCounted));
  return std::unique_ptr<TableRows>(new TableRows(std::move(table), std::move(rows)));
}

uint64_t TableRows::num_rows() const { return table_->num_rows(); }

Result<Batch> TableRows::Read(uint64_t begin, uint64_t end) {
  CHECK_LE(begin, end);
  CHECK_LE(end, num_rows());
  BatchBuilder builder = rows_->NewBatch(end - begin);
  for (uint64_t row = begin; row < end; ++row) {
    const std::optional<std::string> wrong =
        rows_->AddOrDescribe({LineOfRow(row), {.file = 0, .number = row + 1}}, &builder);
    if (wrong) return Status(Code::kInvalidArgument, *wrong);
  }
  return builder.Finish(begin);
}

}  // namespace hdps
