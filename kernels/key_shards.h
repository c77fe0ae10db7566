// The shards of many keys at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/shard_map.h"
#include "kernels/vector_width.h"

namespace hdps {

// shards[i] = ShardOf(keys[i], by, num_shards).
void ShardsOf(VectorWidth width, std::span<const Key> keys, ShardBy by, uint32_t num_shards,
              uint32_t* shards);

// The position of the first key that does not belong to `shard`; keys.size() when all do.
size_t FirstOfAnotherShard(VectorWidth width, std::span<const Key> keys, ShardBy by,
                           uint32_t num_shards, ShardId shard);

}  // namespace hdps
