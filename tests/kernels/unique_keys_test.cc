// Tests distinct keys against std::map: order of first occurrence, and the inverse index.
#include "kernels/keys/unique_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>

#include "common/platform/executor.h"
#include "common/platform/random.h"
#include "tests/kernels/backwards.h"

namespace hdps {
namespace {

TEST(UniqueKeys, AgreesWithMapOverManyBatches) {
  UniqueKeys unique;
  for (uint64_t round = 0; round < 40; ++round) {
    Random random(round);
    const size_t count = random.Below(3000);
    const uint64_t range = 1 + random.Below(round % 2 == 0 ? 50 : 100000);
    std::vector<Key> keys;
    for (size_t i = 0; i < count; ++i) {
      // Dense small numbers, the extremes, and multiples that share their low bits.
      const Key small = random.Below(range);
      keys.push_back(round % 3 == 0 ? small << 40 : round % 3 == 1 ? ~small : small);
    }
    unique.Reset(count);
    std::vector<uint32_t> index(count);
    const size_t half = count / 2;
    unique.Add(std::span(keys).first(half), index.data());
    unique.Add(std::span(keys).subspan(half), index.data() + half);
    std::map<Key, uint32_t> seen;
    std::vector<Key> order;
    for (size_t i = 0; i < count; ++i) {
      const auto [at, fresh] = seen.emplace(keys[i], static_cast<uint32_t>(seen.size()));
      if (fresh) order.push_back(keys[i]);
      ASSERT_EQ(index[i], at->second);
    }
    EXPECT_EQ(std::vector<Key>(unique.unique().begin(), unique.unique().end()), order);
  }
}

// Skewed keys in columns of all lengths, of which every seventh has one key only.
std::vector<std::vector<Key>> SkewedColumns(uint64_t seed, size_t columns, size_t keys_max) {
  Random random(seed);
  std::vector<std::vector<Key>> lists(columns);
  for (std::vector<Key>& list : lists) {
    const size_t count = random.Below(keys_max);
    const uint64_t range = 1 + random.Below(1u << (1 + random.Below(20)));
    for (size_t i = 0; i < count; ++i) {
      const uint64_t id = random.Below(1 + random.Below(range));
      list.push_back(columns % 7 == 0 ? 5 : MixBits(id) << random.Below(2));
    }
  }
  return lists;
}

struct Found {
  std::vector<Key> unique;
  std::vector<uint32_t> shard_begin;
  std::vector<std::vector<uint32_t>> index;
  friend bool operator==(const Found&, const Found&) = default;
};

Found FindWith(UniqueKeys& unique, const std::vector<std::vector<Key>>& lists, uint32_t num_shards,
               Executor* executor) {
  Found found;
  std::vector<KeyColumn> columns;
  for (const std::vector<Key>& list : lists) found.index.emplace_back(list.size());
  for (size_t c = 0; c < lists.size(); ++c) columns.push_back({lists[c], found.index[c].data()});
  unique.Find(columns, ShardBy::kKey, num_shards, executor, &found.unique, &found.shard_begin);
  return found;
}

TEST(UniqueKeys, ThreadsAndVectorsChangeNothing) {
  const auto two = NewTbbExecutor(2);
  Backwards three(3), many(100);
  std::vector<std::unique_ptr<UniqueKeys>> finders;
  for (const VectorWidth width : {VectorWidth::kPlain, VectorWidth::kAvx2, VectorWidth::kAvx512}) {
    if (width <= WidestVectors()) finders.push_back(std::make_unique<UniqueKeys>(width));
  }
  size_t largest = 0;
  for (const size_t columns : {1, 2, 7, 26, 300}) {
    const auto lists = SkewedColumns(columns, columns, 600'000 / columns);
    size_t keys = 0;
    for (const std::vector<Key>& list : lists) keys += list.size();
    largest = std::max(largest, keys);
    std::vector<Key> order;
    std::map<Key, uint32_t> places;
    for (const std::vector<Key>& list : lists) {
      for (const Key key : list) {
        if (places.emplace(key, 0).second) order.push_back(key);
      }
    }
    for (const uint32_t num_shards : {1u, 32u}) {
      std::ranges::stable_sort(
          order, {}, [&](Key key) { return ShardOf(key, ShardBy::kKey, num_shards).value; });
      for (uint32_t i = 0; i < order.size(); ++i) places[order[i]] = i;
      Found wanted{order, std::vector<uint32_t>(num_shards + 1), {}};
      for (const Key key : order) {
        ++wanted.shard_begin[ShardOf(key, ShardBy::kKey, num_shards).value + 1];
      }
      for (uint32_t s = 0; s < num_shards; ++s) wanted.shard_begin[s + 1] += wanted.shard_begin[s];
      for (const std::vector<Key>& list : lists) {
        std::vector<uint32_t>& index = wanted.index.emplace_back();
        for (const Key key : list) index.push_back(places[key]);
      }
      for (const std::unique_ptr<UniqueKeys>& finder : finders) {
        for (Executor* executor : std::initializer_list<Executor*>{two.get(), &three, &many}) {
          EXPECT_EQ(FindWith(*finder, lists, num_shards, executor), wanted)
              << columns << " columns, " << executor->threads() << " threads";
        }
        EXPECT_EQ(FindWith(*finder, lists, num_shards, nullptr), wanted) << columns << " columns";
      }
    }
  }
  EXPECT_GT(largest, 200'000u) << "so that threads share the work";
}

TEST(UniqueKeys, NothingIsFine) {
  UniqueKeys unique;
  unique.Reset(0);
  unique.Add({}, nullptr);
  EXPECT_TRUE(unique.unique().empty());
}

}  // namespace
}  // namespace hdps
