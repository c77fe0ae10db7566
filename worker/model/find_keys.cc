// Finds the distinct keys that a batch needs from its tables.
#include <glog/logging.h>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/table_slices.h"
#include "worker/model/model.h"

namespace hdps {

KeyFinder::KeyFinder(const Job& job, Executor* executor)
    : table_keys_(job.tables.size(), -1), num_shards_(job.cluster.shards), executor_(executor) {
  for (size_t t = 0; t < job.tables.size(); ++t) {
    if (job.tables[t].dense) continue;
    std::vector<uint32_t> features = FeaturesOfTable(job, job.tables[t].name);
    std::vector<uint32_t> field_shards;
    if (job.tables[t].slice_mode == SliceMode::kField) {
      field_shards = FieldShards(job, job.tables[t], features);
    }
    size_t set = 0;
    while (set < set_features_.size() &&
           (set_features_[set] != features || field_shards_[set] != field_shards)) {
      ++set;
    }
    table_keys_[t] = static_cast<int>(set);
    if (set < set_features_.size()) continue;
    set_features_.push_back(std::move(features));
    field_shards_.push_back(std::move(field_shards));
  }
}

void KeyFinder::Find(const Batch& batch, std::vector<KeySet>* sets) {
  sets->resize(set_features_.size());
  for (size_t s = 0; s < sets->size(); ++s) {
    KeySet& set = (*sets)[s];
    set.row_index.resize(batch.sparse.size());
    columns_.clear();
    size_t next = 0;  // Index among the set's features.
    for (uint32_t f = 0; f < batch.sparse.size(); ++f) {
      if (next == set_features_[s].size() || set_features_[s][next] != f) {
        set.row_index[f].clear();
        continue;
      }
      ++next;
      const std::vector<Key>& keys = batch.sparse[f].keys;
      // Not cleared first, because resize would then fill it for nothing.
      set.row_index[f].resize(keys.size());
      columns_.push_back({keys, set.row_index[f].data()});
    }
    CHECK_EQ(next, set_features_[s].size());
    // Sorted by shard, so that rows arrive in the order of their use and gradients leave in it.
    // Done for tables with another sharding too, so that sums over rows have the same order.
    set.shard_by = ShardBy::kKey;
    unique_.Find(columns_, set.shard_by, num_shards_, executor_, &set.unique, &set.shard_begin);
    set.field_shard.clear();
    if (field_shards_[s].empty()) continue;
    set.field_shard.resize(set.unique.size());
    for (size_t c = 0; c < columns_.size(); ++c) {
      for (size_t i = 0; i < columns_[c].keys.size(); ++i) {
        set.field_shard[columns_[c].index[i]] = field_shards_[s][c];
      }
    }
  }
}

}  // namespace hdps
