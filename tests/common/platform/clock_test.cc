// Tests the monotonic clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/platform/monotonic_clock.h"

namespace hdps {
namespace {

TEST(ClockTest, NeverGoesBack) {
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  int64_t last = clock->NowNs();
  for (int i = 0; i < 10000; ++i) {
    const int64_t now = clock->NowNs();
    ASSERT_LE(last, now);
    last = now;
  }
  EXPECT_LE(last / 1'000'000, clock->NowMs());
  EXPECT_THAT(UtcTimestamp(), ::testing::MatchesRegex("20[0-9-]+T[0-9:]+Z"));
}

}  // namespace
}  // namespace hdps
