// Distinct keys against std::map: order of first sight, and the inverse index.
#include "kernels/unique_keys.h"

#include <gtest/gtest.h>

#include <map>

#include "common/random.h"

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

TEST(UniqueKeys, NothingIsFine) {
  UniqueKeys unique;
  unique.Reset(0);
  unique.Add({}, nullptr);
  EXPECT_TRUE(unique.unique().empty());
}

}  // namespace
}  // namespace hdps
