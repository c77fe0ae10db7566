// Adds rows of a table to a batch, as a reader of files does.
#include "worker/data/columnar/table_rows.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/columnar/cell_reader.h"
#include "worker/data/columnar/table_files.h"
#include "worker/data/formats/row_adder.h"

namespace hdps {

namespace {

// Returns the column of lines; nothing if the format has named columns, or the table no lines.
std::optional<size_t> LinesOf(const DataSpec& data, const ColumnTable& table) {
  if (HasNamedColumns(data.format) || data.format == DataFormat::kCriteo) return std::nullopt;
  for (size_t c = 0; c < table.columns().size(); ++c) {
    const CellType& type = table.columns()[c].type;
    const CellKind kind = type.is_dictionary() ? type.values->kind : type.kind;
    if (table.columns()[c].name == kLinesColumn && IsText(kind)) return c;
  }
  return std::nullopt;
}

}  // namespace

TableRows::TableRows(std::shared_ptr<const ColumnTable> table, std::optional<size_t> lines,
                     std::unique_ptr<RowAdder> rows)
    : table_(std::move(table)),
      columns_(table_->columns()),
      lines_(lines),
      rows_(std::move(rows)) {}

TableRows::~TableRows() = default;

Result<std::unique_ptr<TableRows>> TableRows::Make(const DataSpec& data,
                                                   std::shared_ptr<const ColumnTable> table,
                                                   const std::string& name) {
  DataSpec of_table = data;
  of_table.max_bad_rows = 0;
  const std::optional<size_t> lines = LinesOf(data, *table);
  if (!lines) {
    of_table.tables = {{name, table}};
    HDPS_RETURN_IF_ERROR(CheckTable(of_table, {name}));
  }
  HDPS_ASSIGN_OR_RETURN(
      std::unique_ptr<RowAdder> rows,
      RowAdder::Make(of_table, {name}, {{"", kLabelsNotRead}}, nullptr, BadRows::kCounted));
  if (lines) rows->NameRowsOfTable();
  return std::unique_ptr<TableRows>(new TableRows(std::move(table), lines, std::move(rows)));
}

bool TableRows::Use(std::shared_ptr<const ColumnTable> table) {
  // What the first line tells of the labels of lines counts for one table.
  if (lines_ || !AreAlike(columns_, table->columns())) return false;
  table_ = std::move(table);
  rows_->UseTable(table_);
  return true;
}

void TableRows::Leave() {
  table_ = nullptr;
  rows_->UseTable(nullptr);
}

uint64_t TableRows::num_rows() const { return table_->num_rows(); }

Result<Batch> TableRows::Read(uint64_t begin, uint64_t end) {
  CHECK_LE(begin, end);
  CHECK_LE(end, num_rows());
  BatchBuilder builder = rows_->NewBatch(end - begin);
  std::optional<CellReader> cells;
  if (lines_) cells.emplace(table_->columns()[*lines_].type);
  CellText memory;
  for (uint64_t row = begin; row < end; ++row) {
    std::string_view line = LineOfRow(row);
    if (cells) {
      const ColumnTable::Place place = table_->PlaceOf(row);
      if (!cells->Text(table_->chunk(place.batch, *lines_), place.index, &memory, &line)) line = {};
    }
    const std::optional<std::string> wrong =
        rows_->AddOrDescribe({line, {.file = 0, .number = row + 1}}, &builder);
    if (wrong) return Status(Code::kInvalidArgument, *wrong);
  }
  return builder.Finish(begin);
}

}  // namespace hdps
