// Chooses and finds columns by name.
#include "worker/data/records/record_columns.h"

#include <algorithm>
#include <utility>

#include "common/job/spec/data_spec.h"

namespace hdps {

std::vector<ColumnSpec> RecordColumns(const DataSpec& data) {
  std::vector<ColumnSpec> columns;
  for (ColumnSpec column : data.columns) {
    if (!column.has_cell()) continue;
    // A column that is skipped may still have the cell of others.
    const auto reads = [&column](const ColumnSpec& other) {
      return other.cell() == column.name && other.type != ColumnType::kSkip;
    };
    const auto reader = std::ranges::find_if(data.columns, reads);
    if (reader == data.columns.end()) continue;
    if (column.type == ColumnType::kSkip) column.type = reader->type;
    columns.push_back(std::move(column));
  }
  return columns;
}

uint32_t CellPlace(const std::vector<ColumnSpec>& columns, const std::string& name) {
  const auto found = std::ranges::find(columns, name, &ColumnSpec::name);
  return static_cast<uint32_t>(found - columns.begin());
}

}  // namespace hdps
