// Which server gets which shards: evenly, and with as few moves as that takes.
#pragma once

#include <cstdint>

#include "common/base/shard_map.h"

namespace hdps {

// Contiguous runs of shards; no two servers differ by more than one shard.
ShardMap EvenShards(uint32_t num_shards, uint32_t num_servers);

// For `num_servers` servers, of which those below the old number keep what they have as far as it
// is no more than their even part: only shards of servers that are gone, or have too many, move.
ShardMap MoveFewestShards(const ShardMap& before, uint32_t num_servers);

}  // namespace hdps
