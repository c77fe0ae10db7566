// One source for all vector widths.
#include "kernels/keys/key_shards.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hdps {
namespace {

HDPS_INLINE void ShardsOfAll(std::span<const Key> keys, ShardBy by, uint32_t num_shards,
                             uint32_t* shards) {
  if (by == ShardBy::kKey) {
    for (size_t i = 0; i < keys.size(); ++i) {
      shards[i] = ShardOf(keys[i], ShardBy::kKey, num_shards).value;
    }
  } else if (by == ShardBy::kRange) {
    for (size_t i = 0; i < keys.size(); ++i) {
      shards[i] = ShardOf(keys[i], ShardBy::kRange, num_shards).value;
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
  if (by == ShardBy::kGiven) return keys.size();
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

void OrderByShard(VectorWidth width, std::span<const Key> keys, ShardBy by, uint32_t num_shards,
                  Executor* executor, uint32_t* places, Key* sorted, uint32_t* shard_begin) {
  constexpr size_t kParallelKeysMin = size_t{1} << 15;
  const bool alone = executor == nullptr || keys.size() < kParallelKeysMin;
  const size_t pieces = alone ? 1 : static_cast<size_t>(executor->threads());
  const auto for_pieces = [&](const auto& work) {
    if (pieces == 1) return work(0);
    executor->ParallelFor(pieces, work);
  };
  const auto begin_of = [&](size_t piece) { return keys.size() * piece / pieces; };
  // For each piece the number of keys of each shard, then the position of the next one.
  std::vector<std::vector<uint32_t>> next(pieces);
  for_pieces([&](size_t p) {
    const size_t begin = begin_of(p), end = begin_of(p + 1);
    ShardsOf(width, keys.subspan(begin, end - begin), by, num_shards, places + begin);
    std::vector<uint32_t> counts(num_shards);
    for (size_t k = begin; k < end; ++k) ++counts[places[k]];
    next[p] = std::move(counts);
  });
  uint32_t at = 0;
  for (uint32_t s = 0; s < num_shards; ++s) {
    shard_begin[s] = at;
    for (std::vector<uint32_t>& counts : next) at += std::exchange(counts[s], at);
  }
  shard_begin[num_shards] = at;
  for_pieces([&](size_t p) {
    std::vector<uint32_t> own = std::move(next[p]);
    for (size_t k = begin_of(p); k < begin_of(p + 1); ++k) {
      places[k] = own[places[k]]++;
      sorted[places[k]] = keys[k];
    }
  });
}

}  // namespace hdps
