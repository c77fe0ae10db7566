// Computes the shards of many keys at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/shard_map.h"
#include "common/platform/executor.h"
#include "kernels/vector_width.h"

namespace hdps {

// Sets shards[i] = ShardOf(keys[i], by, num_shards). Not for kGiven.
void ShardsOf(VectorWidth width, std::span<const Key> keys, ShardBy by, uint32_t num_shards,
              uint32_t* shards);

// Returns the position of the first key that does not belong to `shard`; keys.size() if all do, or
// if it cannot be known (kGiven).
size_t FirstOfAnotherShard(VectorWidth width, std::span<const Key> keys, ShardBy by,
                           uint32_t num_shards, ShardId shard);

// Orders keys by shard; keys of one shard keep their order. Sets places[k] to the new position of
// keys[k], and sorted[places[k]] = keys[k]. shard_begin[num_shards + 1]: shard s has
// sorted[shard_begin[s] .. shard_begin[s + 1]). Long lists are split over the threads of `executor`
// (may be null); the order is the same.
void OrderByShard(VectorWidth width, std::span<const Key> keys, ShardBy by, uint32_t num_shards,
                  Executor* executor, uint32_t* places, Key* sorted, uint32_t* shard_begin);

}  // namespace hdps
