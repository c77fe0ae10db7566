// Which keys a batch needs of which tables.
#include <glog/logging.h>

#include <algorithm>

#include "common/job/job_registry.h"
#include "worker/model/feature_list.h"
#include "worker/model/model.h"

namespace hdps {

KeyFinder::KeyFinder(const Job& job, Executor* executor)
    : table_keys_(job.tables.size(), -1), num_shards_(job.cluster.shards), executor_(executor) {
  for (size_t t = 0; t < job.tables.size(); ++t) {
    if (job.tables[t].dense) continue;
    std::vector<uint32_t> features;
    for (const LayerSpec& layer : job.model.layers) {
      if (!ReadsRows(job.model, layer) || layer.table != job.tables[t].name) continue;
      const std::vector<uint32_t> used = FeatureIndexes(job.data, layer);
      features.insert(features.end(), used.begin(), used.end());
    }
    std::sort(features.begin(), features.end());
    features.erase(std::unique(features.begin(), features.end()), features.end());
    const auto set = std::find(set_features_.begin(), set_features_.end(), features);
    table_keys_[t] = static_cast<int>(set - set_features_.begin());
    if (set != set_features_.end()) continue;
    set_features_.push_back(std::move(features));
    shard_by_.push_back(job.tables[t].shard_by);
  }
}

void KeyFinder::Find(const Batch& batch, std::vector<KeySet>* sets) {
  sets->resize(set_features_.size());
  for (size_t s = 0; s < sets->size(); ++s) {
    KeySet& set = (*sets)[s];
    set.row_index.resize(batch.sparse.size());
    columns_.clear();
    size_t next = 0;  // Of the set's features.
    for (uint32_t f = 0; f < batch.sparse.size(); ++f) {
      if (next == set_features_[s].size() || set_features_[s][next] != f) {
        set.row_index[f].clear();
        continue;
      }
      ++next;
      const std::vector<Key>& keys = batch.sparse[f].keys;
      set.row_index[f].resize(keys.size());  // Not cleared, or it would be filled for nothing.
      columns_.push_back({keys, set.row_index[f].data()});
    }
    CHECK_EQ(next, set_features_[s].size());
    // By shard, so rows come in the order in which they are used, and gradients leave in it.
    set.shard_by = shard_by_[s];
    unique_.Find(columns_, set.shard_by, num_shards_, executor_, &set.unique, &set.shard_begin);
  }
}

}  // namespace hdps
