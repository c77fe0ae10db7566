// What a job says about its data, for files that have items alone.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/spec/data_spec.h"

namespace hdps {

struct ItemData {
  DataSpec data;            // Has the features of the items, and perhaps others.
  std::string text_column;  // The column whose texts name the items.
};

// Returns `data` for files in which only the cells of `features` and of `text_column` need be:
// without a header, all other columns are in all rows of a file or in none. An empty `text_column`
// means the first of `features` that is a column. Other formats than csv keep all of their cells.
// kInvalidArgument if there is no such column, or if the format does not name its cells.
Result<ItemData> DataOfItems(const DataSpec& data, const std::vector<std::string>& features,
                             const std::string& text_column);

}  // namespace hdps
