// Places the rows of tables that are cut by feature or by column.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/shard_map.h"
#include "common/job/spec/table_spec.h"

namespace hdps {

struct Job;

// Returns the sparse features that have rows in a table, as positions in
// FeaturesOf(job.data).sparse, ascending.
std::vector<uint32_t> FeaturesOfTable(const Job& job, const std::string& table);

// Is true if two tables that are alike otherwise have every row in the same shard.
bool SameCut(const TableSpec& a, const TableSpec& b);
// Returns why the rows of a table cut as `from` cannot be stored in the same table cut as `to`;
// empty if they can. Rows that are whole move by their keys, and parts of rows are put together.
std::string WhyNotRecut(const TableSpec& from, const TableSpec& to);

// SliceMode::kField: returns the shard of each of the table's features, in order; all rows of a
// feature are in one shard. Without manual_shapes, feature f of F is in shard f * shards / F, so
// that servers, which own consecutive shards, own consecutive features, and as many as each other.
// With them, slice j has the shards that server j owns if there are as many servers as slices.
// Features that share a vocabulary share rows, so they are in the shard of the first of them.
// Requires: the job was checked.
std::vector<uint32_t> FieldShards(const Job& job, const TableSpec& table,
                                  std::span<const uint32_t> features);

// SliceMode::kColumn: returns the shard of slice `slice` of a row. Slice j of all rows lies in the
// j-th of `slices` equal ranges of shards, and the hash of the key chooses the shard in that range.
inline uint32_t ColumnShard(Key key, uint32_t slice, uint32_t slices, uint32_t num_shards) {
  const uint32_t each = num_shards / slices;
  return slice * each + ShardOf(key, ShardBy::kKey, each).value;
}
// Returns the first column of the rows in a shard; 0 unless the mode is kColumn.
inline uint32_t FirstColumn(const TableSpec& table, ShardId shard, uint32_t num_shards) {
  const uint32_t slices = table.row_slices();
  if (slices == 1 || num_shards < slices) return 0;
  return shard.value / (num_shards / slices) * table.slice_dim();
}

}  // namespace hdps
