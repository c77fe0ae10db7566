// Assigns keys to shards and shards to servers.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/hash.h"
#include "common/base/ids.h"

namespace hdps {

// The rule by which the keys of a table are assigned to shards.
enum class ShardBy : uint8_t {
  kKey = 0,    // Each key is hashed on its own.
  kGroup = 1,  // Keys with the same upper 32 bits stay together: the chunks of one dense tensor.
  kRange = 2,  // A shard holds a contiguous range of keys.
  kGiven = 3,  // The key does not determine the shard; each request names it.
};

// Returns the shard of a key. It depends on the key alone, so it is the same for any number of
// servers. `num_shards` is a power of two of at most 2^16. Not for kGiven.
inline ShardId ShardOf(Key key, ShardBy by, uint32_t num_shards) {
  if (by == ShardBy::kRange) return {static_cast<uint32_t>(((key >> 32) * num_shards) >> 32)};
  const uint64_t mixed = MixBits((by == ShardBy::kGroup ? key >> 32 : key) + 0x5851f42d4c957f2du);
  return {static_cast<uint32_t>(((mixed >> 32) * num_shards) >> 32)};
}

// The assignment of every shard to one server in one view. A map is shared and never changes once
// made.
struct ShardMap {
  std::vector<ServerId> owner;  // [num_shards]

  uint32_t num_shards() const { return static_cast<uint32_t>(owner.size()); }
  std::vector<ShardId> ShardsOf(ServerId server) const {
    std::vector<ShardId> shards;
    for (uint32_t s = 0; s < num_shards(); ++s) {
      if (owner[s] == server) shards.push_back({s});
    }
    return shards;
  }
};

}  // namespace hdps
