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
  bool is_whole = false;  // All rows of a slice.
  std::function<Result<uint64_t>()> num_rows = {};
  // Like TableSlice::VisitRows.
  std::function<Status(size_t block_rows, const TableSlice::Visit& visit)> visit = {};
  // Copies all rows that visit would show, as they are now; see TableSlice::CopyRows. Null: cannot
  // be copied.
  std::function<Result<std::optional<RowCopy>>(CopyBudget* budget)> copy = {};
  // Keeps those rows as they are now after `clock` steps; see TableSlice::BeginSave. Null: cannot
  // be kept.
  std::function<std::optional<TableSlice::RowsOfSave>(Clock clock)> keep = {};
  // Sets rows; kCorruption if rows like these cannot exist. Null if the slice may only be read.
  std::function<Status(std::span<const Key> keys, std::span<const float> rows)> store = {};
};
// kWhole: all rows. kDelta: what changed since the slices' mark. kMoved: what changed since their
// mark of a move, and all counts of policies; it is read as a kDelta.
enum class SnapshotKind : uint8_t { kWhole, kDelta, kMoved };
std::vector<SnapshotPart> PartsOf(const std::vector<const TableSlice*>& slices, SnapshotKind kind);
std::vector<SnapshotPart> PartsOf(const std::vector<TableSlice*>& slices, SnapshotKind kind);

// Returns `part` as it is now after `clock` steps, whatever becomes of its slice: a copy in memory,
// or rows that the slice keeps on disk. Returns none if the slice keeps none and a copy needs more
// than is left of `budget`.
Result<std::optional<SnapshotPart>> TakePart(const SnapshotPart& part, Clock clock,
                                             CopyBudget* budget);

// Returns what the table of a file holds that follows the table `before`.
PartKind KindOfPart(const std::string& before, const std::string& name, uint32_t dim);

}  // namespace hdps
