// Which keys a batch needs of which tables.
#include <glog/logging.h>

#include <algorithm>

#include "kernels/key_shards.h"
#include "worker/model/feature_list.h"
#include "worker/model/model.h"

namespace hdps {

KeyFinder::KeyFinder(const Job& job, Executor* executor)
    : table_keys_(job.tables.size(), -1), num_shards_(job.cluster.shards), executor_(executor) {
  for (size_t t = 0; t < job.tables.size(); ++t) {
    if (job.tables[t].dense) continue;
    std::vector<uint32_t> features;
    for (const LayerSpec& layer : job.model.layers) {
      if (layer.kind != LayerKind::kEmbedding || layer.table != job.tables[t].name) continue;
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
    for (std::vector<uint32_t>& index : set.row_index) index.clear();
    columns_.clear();
    for (const uint32_t f : set_features_[s]) {
      CHECK_LT(f, batch.sparse.size());
      const std::vector<Key>& keys = batch.sparse[f].keys;
      set.row_index[f].resize(keys.size());
      columns_.push_back({keys, set.row_index[f].data()});
    }
    unique_.Find(columns_, executor_);
    OrderByShard(unique_.unique(), shard_by_[s], &set);
  }
}

// So rows come in the order in which they are used, and gradients leave in it.
void KeyFinder::OrderByShard(std::span<const Key> unique, ShardBy by, KeySet* set) {
  new_index_.resize(unique.size());
  set->unique.resize(unique.size());
  hdps::OrderByShard(WidestVectors(), unique, by, num_shards_, executor_, new_index_.data(),
                     set->unique.data());
  const auto renumber = [&](size_t feature) {
    for (uint32_t& row : set->row_index[feature]) row = new_index_[row];
  };
  const size_t features = set->row_index.size();
  size_t keys = 0;
  for (const std::vector<uint32_t>& index : set->row_index) keys += index.size();
  constexpr size_t kManyKeys = 1 << 18;  // Fewer are done before others have begun.
  if (executor_ != nullptr && keys >= kManyKeys) {
    executor_->ParallelFor(features, renumber);
  } else {
    for (size_t f = 0; f < features; ++f) renumber(f);
  }
}

void FindKeys(const Job& job, const Batch& batch, std::vector<KeySet>* sets,
              std::vector<int>* table_keys) {
  KeyFinder finder(job);
  finder.Find(batch, sets);
  *table_keys = finder.table_keys();
}

}  // namespace hdps
