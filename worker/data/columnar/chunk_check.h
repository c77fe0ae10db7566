// Checks that the cells of a chunk lie inside of what they refer to.
#pragma once

#include "common/base/status.h"
#include "worker/data/columnar/columns.h"

namespace hdps {

// Looks at all offsets, views and indices of a chunk and of its values. kInvalidArgument tells what
// is wrong, without the column: "its offsets go backwards at cell 3". Requires: buffers are as long
// as offsets and the number of cells say. `checked` is a dictionary that was found right before and
// is not looked at again.
Status CheckChunk(const CellType& type, const ColumnChunk& chunk,
                  const ColumnChunk* checked = nullptr);

}  // namespace hdps
