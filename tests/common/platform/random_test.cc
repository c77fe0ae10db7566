// Tests numbers drawn from a seed, and peer ids drawn from the system.
#include "common/platform/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace hdps {
namespace {

TEST(RandomTest, IsAFunctionOfTheSeed) {
  Random a(5), b(5), c(6);
  for (int i = 0; i < 100; ++i) {
    const uint64_t next = a.Next();
    EXPECT_EQ(next, b.Next());
    EXPECT_NE(next, c.Next());
  }
}

TEST(RandomTest, NumbersHaveTheirDistribution) {
  constexpr int kCount = 200000;
  Random random(1);
  double sum = 0, squares = 0, unit = 0;
  std::vector<int> below(7, 0);
  for (int i = 0; i < kCount; ++i) {
    const double normal = random.Normal();
    ASSERT_LT(std::abs(normal), 10.0);
    sum += normal;
    squares += normal * normal;
    unit += random.Unit();
    ++below[random.Below(7)];
  }
  EXPECT_NEAR(sum / kCount, 0, 0.01);
  EXPECT_NEAR(squares / kCount, 1, 0.02);
  EXPECT_NEAR(unit / kCount, 0.5, 0.005);
  for (const int count : below) EXPECT_NEAR(count, kCount / 7.0, 1000);
}

TEST(RandomTest, PeersAreNeverTheSchedulerOrEachOther) {
  std::set<PeerId> peers;
  for (int i = 0; i < 1000; ++i) {
    const PeerId peer = NewPeerId();
    EXPECT_GT(peer, kSchedulerPeer);
    EXPECT_TRUE(peers.insert(peer).second);
  }
}

}  // namespace
}  // namespace hdps
