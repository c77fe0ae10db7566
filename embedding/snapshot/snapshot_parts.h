// What of a shard's slices stands in its snapshot: their rows and, behind a table's, what its
// policy has counted.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "embedding/table.h"

namespace hdps {

// A table of the file: the rows of a slice, or the frequency sketch of its policy, in pieces
// numbered from 0 as keys; pieces that are all zero are left out.
struct SnapshotPart {
  std::string name;
  uint32_t dim = 0, state_floats = 0;
  bool is_sketch = false;
  ShardBy shard_by = ShardBy::kKey;
  std::function<uint64_t()> num_rows;
  // As TableSlice::VisitRows.
  std::function<Status(size_t block_rows, const TableSlice::Visit& visit)> visit;
  // Sets rows; kCorruption when there cannot be such. Null where the slice may only be read.
  std::function<Status(std::span<const Key> keys, std::span<const float> rows)> store;
};
std::vector<SnapshotPart> PartsOf(const std::vector<const TableSlice*>& slices);
std::vector<SnapshotPart> PartsOf(const std::vector<TableSlice*>& slices);

// Whether the table of a file that follows the table `before` holds the sketch of that one.
bool IsCounts(const std::string& before, const std::string& name, uint32_t dim);

}  // namespace hdps
