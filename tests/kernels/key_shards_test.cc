// Tests the shards of many keys against those of single keys.
#include "kernels/keys/key_shards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <vector>

#include "common/platform/random.h"
#include "tests/kernels/backwards.h"

namespace hdps {
namespace {

TEST(KeyShards, AreThoseOfEachKeyForEveryWidth) {
  Random random(11);
  for (const VectorWidth width : {VectorWidth::kPlain, VectorWidth::kAvx2, VectorWidth::kAvx512}) {
    if (width > WidestVectors()) continue;
    for (const ShardBy by : {ShardBy::kKey, ShardBy::kGroup}) {
      for (const uint32_t num_shards : {1u, 2u, 32u, 65536u}) {
        std::vector<Key> keys(random.Below(700));
        for (Key& key : keys) key = random.Below(3) == 0 ? random.Below(100) : random.Next();
        std::vector<uint32_t> shards(keys.size());
        ShardsOf(width, keys, by, num_shards, shards.data());
        for (size_t i = 0; i < keys.size(); ++i) {
          ASSERT_EQ(shards[i], ShardOf(keys[i], by, num_shards).value);
        }
      }
    }
  }
}

TEST(KeyShards, TheFirstKeyOfAnotherShardIsFound) {
  constexpr uint32_t kShards = 8;
  constexpr ShardId kShard{3};
  std::vector<Key> own, others;
  for (Key key = 0; own.size() < 600; ++key) {
    (ShardOf(key, ShardBy::kKey, kShards) == kShard ? own : others).push_back(key);
  }
  const VectorWidth width = WidestVectors();
  const auto first = [&](const std::vector<Key>& keys) {
    return FirstOfAnotherShard(width, keys, ShardBy::kKey, kShards, kShard);
  };
  EXPECT_EQ(first({}), 0u);
  EXPECT_EQ(first(own), own.size());
  for (const size_t at : {0, 1, 255, 256, 257, 599}) {
    std::vector<Key> keys = own;
    keys[at] = others[at];
    keys.back() = others.back();
    EXPECT_EQ(first(keys), at);
  }
}

TEST(KeyShards, KeysAreOrderedAlikeInAnyNumberOfPieces) {
  Random random(12);
  Backwards three(3), many(100);
  for (const size_t count : {0, 1, 77, 40'000, 100'000}) {
    for (const uint32_t num_shards : {1u, 32u, 1024u}) {
      std::vector<Key> keys(count), sorted(count);
      for (Key& key : keys) key = random.Below(50'000);
      std::vector<uint32_t> order(count), places(count);  // order[i]: index of the key at place i.
      std::iota(order.begin(), order.end(), 0u);
      std::ranges::stable_sort(
          order, {}, [&](uint32_t k) { return ShardOf(keys[k], ShardBy::kKey, num_shards).value; });
      for (Executor* executor : std::initializer_list<Executor*>{nullptr, &three, &many}) {
        std::vector<uint32_t> shard_begin(num_shards + 1);
        OrderByShard(WidestVectors(), keys, ShardBy::kKey, num_shards, executor, places.data(),
                     sorted.data(), shard_begin.data());
        ASSERT_EQ(shard_begin.front(), 0u);
        ASSERT_EQ(shard_begin.back(), count);
        for (uint32_t s = 0; s < num_shards; ++s) {
          for (uint32_t i = shard_begin[s]; i < shard_begin[s + 1]; ++i) {
            ASSERT_EQ(ShardOf(sorted[i], ShardBy::kKey, num_shards).value, s);
          }
        }
        for (uint32_t i = 0; i < count; ++i) {
          ASSERT_EQ(places[order[i]], i);
          ASSERT_EQ(sorted[i], keys[order[i]]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hdps
