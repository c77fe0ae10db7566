// The shards of many keys at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/shard_map.h"
#include "common/platform/executor.h"
#include "kernels/vector_width.h"

namespace hdps {

// shards[i] = ShardOf(keys[i], by, num_shards). Not for kGiven.
void ShardsOf(VectorWidth width, std::span<const Key> keys, ShardBy by, uint32_t num_shards,
              uint32_t* shards);

// The position of the first key that does not belong to `shard`; keys.size() when all do, or
// nothing is known of it (kGiven).
size_t FirstOfAnotherShard(VectorWidth width, std::span<const Key> keys, ShardBy by,
                           uint32_t num_shards, ShardId shard);

// places[k]: where keys[k] comes when keys go by shard, those of one shard as they came; also
// sorted[places[k]] = keys[k]. Long lists go to the executor's threads, if there is one, in pieces:
// the order is the same. shard_begin[num_shards + 1]: the keys of shard s are
// sorted[shard_begin[s] .. shard_begin[s + 1]).
void OrderByShard(VectorWidth width, std::span<const Key> keys, ShardBy by, uint32_t num_shards,
                  Executor* executor, uint32_t* places, Key* sorted, uint32_t* shard_begin);

}  // namespace hdps
