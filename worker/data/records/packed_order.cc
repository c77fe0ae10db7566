// Chooses a form for each cell.
#include "worker/data/records/packed_order.h"

#include <algorithm>

#include "common/base/hash.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/number.h"

namespace hdps {

PackedOrder::PackedOrder(const DataSpec& data, const std::vector<ColumnSpec>& cells)
    : missing_(data.missing) {
  // A number would have to be compared with it as a text.
  const bool missing_is_number = ParseNumber(missing_).has_value();
  for (const ColumnSpec& cell : cells) {
    Place& place = places_.emplace_back();
    const auto reads = [&cell](const ColumnSpec& column) {
      return column.type != ColumnType::kSkip && column.cell() == cell.name;
    };
    const auto reader = std::ranges::find_if(data.columns, reads);
    if (std::ranges::count_if(data.columns, reads) != 1) continue;
    if (reader->type == ColumnType::kCategorical && reader->vocab_size == 0) {
      place = {Form::kKey, bytes_, HashString(reader->key_space())};
    } else if (reader->type == ColumnType::kNumeric && !missing_is_number) {
      place = {Form::kNumber, bytes_, 0};
    } else {
      continue;
    }
    bytes_ += sizeof(uint64_t);
  }
}

}  // namespace hdps
