// What of a shard's slices stands in its snapshot: their rows and, behind a table's, what its
// policy has counted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/shard_map.h"
#include "common/base/status.h"
#include "embedding/table.h"

namespace hdps {

// What a table of the file holds. kErased: in a delta, keys whose rows went, before the rows that
// came or changed, and without floats. kSketch: the frequency sketch of the policy, in pieces
// numbered from 0 as keys; left out are those that are all zero, in a delta those that are as they
// were.
enum class PartKind : uint8_t { kRows, kErased, kSketch };

struct SnapshotPart {
  PartKind kind = PartKind::kRows;
  std::string name;
  uint32_t dim = 0, state_floats = 0;
  ShardBy shard_by = ShardBy::kKey;
  std::function<Result<uint64_t>()> num_rows;
  // As TableSlice::VisitRows.
  std::function<Status(size_t block_rows, const TableSlice::Visit& visit)> visit;
  // All that visit would show, as it is now; see TableSlice::CopyRows. Null: nothing but visit.
  std::function<std::optional<RowCopy>(CopyBudget* budget)> copy;
  // Sets rows; kCorruption when there cannot be such. Null where the slice may only be read.
  std::function<Status(std::span<const Key> keys, std::span<const float> rows)> store;
};
// Of a snapshot, or of a delta with what changed since the slices' mark.
enum class SnapshotKind : uint8_t { kWhole, kDelta };
std::vector<SnapshotPart> PartsOf(const std::vector<const TableSlice*>& slices, SnapshotKind kind);
std::vector<SnapshotPart> PartsOf(const std::vector<TableSlice*>& slices, SnapshotKind kind);

// `part` of its own, whatever becomes of its slice. None where CopyRows would give none.
Result<std::optional<SnapshotPart>> CopyOfPart(const SnapshotPart& part, CopyBudget* budget);

// What the table of a file holds that follows the table `before`.
PartKind KindOfPart(const std::string& before, const std::string& name, uint32_t dim);

}  // namespace hdps
