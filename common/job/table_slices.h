// Where the rows of a table are that is cut by feature or by column.
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

// The sparse features whose rows a table has, as positions in FeaturesOf(job.data).sparse,
// ascending.
std::vector<uint32_t> FeaturesOfTable(const Job& job, const std::string& table);

// SliceMode::kField: the shard of all rows of each of the table's features, in their order. Without
// manual_shapes the f-th of F features has shard f * shards / F, so that servers, which have
// neighbouring shards, have neighbouring features, as many as each other. With them, slice j has
// the shards that server j has where there are as many servers as slices. Features of columns with
// one vocabulary have the shard of the first of them: they share rows. Requires: the job was
// checked.
std::vector<uint32_t> FieldShards(const Job& job, const TableSpec& table,
                                  std::span<const uint32_t> features);

// SliceMode::kColumn: slice j of all rows has the j-th of `slices` equal ranges of shards, and in
// it the place of the key's hash.
inline uint32_t ColumnShard(Key key, uint32_t slice, uint32_t slices, uint32_t num_shards) {
  const uint32_t each = num_shards / slices;
  return slice * each + ShardOf(key, ShardBy::kKey, each).value;
}
// The first column of the rows that a shard has; 0 but under kColumn.
inline uint32_t FirstColumn(const TableSpec& table, ShardId shard, uint32_t num_shards) {
  const uint32_t slices = table.row_slices();
  if (slices == 1 || num_shards < slices) return 0;
  return shard.value / (num_shards / slices) * table.slice_dim();
}

}  // namespace hdps
