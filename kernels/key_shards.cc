// One source for all vector widths.
#include "kernels/key_shards.h"

#include <algorithm>

namespace hdps {
namespace {

HDPS_INLINE void ShardsOfAll(std::span<const Key> keys, ShardBy by, uint32_t num_shards,
                             uint32_t* shards) {
  if (by == ShardBy::kKey) {
    for (size_t i = 0; i < keys.size(); ++i) {
      shards[i] = ShardOf(keys[i], ShardBy::kKey, num_shards).value;
    }
  } else {
    for (size_t i = 0; i < keys.size(); ++i) {
      shards[i] = ShardOf(keys[i], ShardBy::kGroup, num_shards).value;
    }
  }
}

}  // namespace

void ShardsOf(VectorWidth width, std::span<const Key> keys, ShardBy by, uint32_t num_shards,
              uint32_t* shards) {
  WithVectors(
      width, [&]() __attribute__((always_inline)) { ShardsOfAll(keys, by, num_shards, shards); });
}

size_t FirstOfAnotherShard(VectorWidth width, std::span<const Key> keys, ShardBy by,
                           uint32_t num_shards, ShardId shard) {
  constexpr size_t kBlock = 256;
  uint32_t shards[kBlock];
  for (size_t begin = 0; begin < keys.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, keys.size() - begin);
    ShardsOf(width, keys.subspan(begin, count), by, num_shards, shards);
    uint32_t others = 0;
    for (size_t i = 0; i < count; ++i) others |= shards[i] ^ shard.value;
    if (others == 0) continue;
    const auto other =
        std::find_if(shards, shards + count, [&](uint32_t found) { return found != shard.value; });
    return begin + static_cast<size_t>(other - shards);
  }
  return keys.size();
}

}  // namespace hdps
