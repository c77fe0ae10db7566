// The parts of a shard's snapshot: the rows of each table and, behind them, its policy's counts.
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

// The contents of a table of the file. kErased, only in a delta: keys whose rows were removed,
// without floats; it precedes the rows that were made or changed. kSketch: the frequency sketch of
// the policy, in pieces that are numbered from 0 as keys; pieces of zeros, and in a delta unchanged
// pieces, are left out.
enum class PartKind : uint8_t { kRows, kErased, kSketch };

struct SnapshotPart {
  PartKind kind = PartKind::kRows;
  std::string name;
  uint32_t dim = 0, state_floats = 0;
  ShardBy shard_by = ShardBy::kKey;
  std::function<Result<uint64_t>()> num_rows;
  // Like TableSlice::VisitRows.
  std::function<Status(size_t block_rows, const TableSlice::Visit& visit)> visit;
  // Copies all rows that visit would show, as they are now; see TableSlice::CopyRows. Null: cannot
  // be copied.
  std::function<Result<std::optional<RowCopy>>(CopyBudget* budget)> copy;
  // Sets rows; kCorruption if rows like these cannot exist. Null if the slice may only be read.
  std::function<Status(std::span<const Key> keys, std::span<const float> rows)> store;
};
// kWhole: all rows. kDelta: what changed since the slices' mark.
enum class SnapshotKind : uint8_t { kWhole, kDelta };
std::vector<SnapshotPart> PartsOf(const std::vector<const TableSlice*>& slices, SnapshotKind kind);
std::vector<SnapshotPart> PartsOf(const std::vector<TableSlice*>& slices, SnapshotKind kind);

// Returns a copy of `part` that does not need its slice. Returns none where CopyRows would.
Result<std::optional<SnapshotPart>> CopyOfPart(const SnapshotPart& part, CopyBudget* budget);

// Returns what the table of a file holds that follows the table `before`.
PartKind KindOfPart(const std::string& before, const std::string& name, uint32_t dim);

}  // namespace hdps
