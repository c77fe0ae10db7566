// Chooses and finds columns by name.
#include "worker/data/records/record_columns.h"

#include <algorithm>
#include <iterator>

#include "common/job/spec/data_spec.h"

namespace hdps {

std::vector<ColumnSpec> RecordColumns(const DataSpec& data) {
  std::vector<ColumnSpec> columns;
  std::ranges::copy_if(data.columns, std::back_inserter(columns), [](const ColumnSpec& column) {
    return column.has_cell() && column.type != ColumnType::kSkip;
  });
  return columns;
}

uint32_t CellPlace(const std::vector<ColumnSpec>& columns, const std::string& name) {
  const auto found = std::ranges::find(columns, name, &ColumnSpec::name);
  return static_cast<uint32_t>(found - columns.begin());
}

}  // namespace hdps
