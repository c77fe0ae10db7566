// Finds the distinct keys of a batch, so that each row is transferred once.
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

// One list of keys, and an array for the positions of its keys.
struct KeyColumn {
  std::span<const Key> keys;
  uint32_t* index = nullptr;  // [keys]
};

// Invariant: unique() holds every key added since Reset() once, in order of first occurrence.
// Memory is kept from batch to batch.
class UniqueKeys {
 public:
  // `width` is at most what the machine has; it does not change the result.
  explicit UniqueKeys(VectorWidth width = WidestVectors()) : width_(width) {}

  // Forgets all keys; at most `keys_max` will be added.
  void Reset(size_t keys_max);
  // Sets index[i] to the position of keys[i] in unique().
  void Add(std::span<const Key> keys, uint32_t* index);
  std::span<const Key> unique() const { return table_.unique(); }
  // Finds the distinct keys of all columns and orders them by shard. `*sorted` gets the keys by
  // shard, those of one shard in order of first occurrence; `*shard_begin` [num_shards + 1] gets
  // where each shard begins; every index gets the position in `*sorted`. The result is the same for
  // any number of threads. Uses the threads of `executor` (may be null) if that is faster. Keys
  // that were added are forgotten, and Reset() must come before the next Add().
  void Find(std::span<const KeyColumn> columns, ShardBy by, uint32_t num_shards, Executor* executor,
            std::vector<Key>* sorted, std::vector<uint32_t>* shard_begin);

 private:
  VectorWidth width_;
  KeyTable table_;
  size_t keys_left_ = 0;          // Keys that may still be added, of those given to Reset().
  std::vector<uint32_t> places_;  // Scratch of Find().
};

}  // namespace hdps
