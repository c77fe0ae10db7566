// Finds the distinct keys of a batch, so that each row travels once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/shard_map.h"
#include "common/platform/executor.h"
#include "kernels/keys/key_table.h"
#include "kernels/vector_width.h"

namespace hdps {

// One list of keys, and where the positions of its keys go.
struct KeyColumn {
  std::span<const Key> keys;
  uint32_t* index = nullptr;  // [keys]
};

// Invariant: unique() holds every key added since Reset() once, in order of first sight. Its memory
// is kept from batch to batch.
class UniqueKeys {
 public:
  // `width`: no more than the machine has; it changes nothing that is found.
  explicit UniqueKeys(VectorWidth width = WidestVectors()) : width_(width) {}

  // Forgets all keys; at most `keys_max` will be added.
  void Reset(size_t keys_max);
  // index[i] = position of keys[i] in unique().
  void Add(std::span<const Key> keys, uint32_t* index);
  std::span<const Key> unique() const { return table_.unique(); }
  // `*sorted` gets the distinct keys of all columns, by shard, within one in order of first sight,
  // `*shard_begin` [num_shards + 1] where the keys of each shard begin there, and every index the
  // position there: the same on however many threads. Where that is faster, keys are ordered by the
  // executor's threads (null: by the caller's alone). What was added is forgotten, and Reset()
  // comes before the next Add().
  void Find(std::span<const KeyColumn> columns, ShardBy by, uint32_t num_shards, Executor* executor,
            std::vector<Key>* sorted, std::vector<uint32_t>* shard_begin);

 private:
  VectorWidth width_;
  KeyTable table_;
  size_t keys_left_ = 0;          // Of those announced.
  std::vector<uint32_t> places_;  // Scratch of Find().
};

}  // namespace hdps
