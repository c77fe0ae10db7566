// Assigns shards to servers: evenly, and with as few moves as possible.
#pragma once

#include <cstdint>

#include "common/base/shard_map.h"

namespace hdps {

// Contiguous runs of shards; no two servers differ by more than one shard.
ShardMap EvenShards(uint32_t num_shards, uint32_t num_servers);

// Assigns shards to `num_servers` servers. Those below the old number keep their shards up to an
// even share, so only shards of removed servers, or of servers with too many, move.
ShardMap MoveFewestShards(const ShardMap& before, uint32_t num_servers);

}  // namespace hdps
