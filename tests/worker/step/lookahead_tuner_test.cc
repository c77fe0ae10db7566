// A trial finds the shorter way, and noise does not change the choice.
#include "worker/step/lookahead_tuner.h"

#include <gtest/gtest.h>

#include "common/platform/random.h"

namespace hdps {
namespace {

struct Ran {
  uint64_t asked = 0, changes = 0;
};

// Steps that take `with` or `without` nanoseconds, and up to a tenth more.
Ran RunSteps(LookaheadTuner& choice, uint64_t steps, int64_t with, int64_t without) {
  Random random(7);
  Ran ran;
  for (uint64_t i = 0; i < steps; ++i) {
    const int64_t ns = choice.ask() ? with : without;
    ran.asked += choice.ask() ? 1 : 0;
    const auto noise = static_cast<int64_t>(random.Below(static_cast<uint64_t>(ns) / 10));
    ran.changes += choice.OnStep(ns + noise) ? 1 : 0;
  }
  return ran;
}

TEST(LookaheadTuner, AsksAlwaysWhereTheJobSaysSo) {
  LookaheadTuner choice(false);
  EXPECT_EQ(RunSteps(choice, 10'000, 2000, 1000).asked, 10'000u);
}

TEST(LookaheadTuner, TakesTheShorterWay) {
  LookaheadTuner shared_cores(true), far_servers(true);
  const Ran shared = RunSteps(shared_cores, 10'000, 1200, 1000),
            far = RunSteps(far_servers, 10'000, 1000, 1500);
  EXPECT_LE(shared.asked, 600u);
  EXPECT_EQ(shared.changes, 1u);
  EXPECT_FALSE(shared_cores.ask());
  EXPECT_GE(far.asked, 9'500u);
  EXPECT_EQ(far.changes, 0u);
}

TEST(LookaheadTuner, FollowsWhatChanges) {
  LookaheadTuner choice(true);
  RunSteps(choice, 2'000, 1200, 1000);
  EXPECT_FALSE(choice.ask());
  const Ran later = RunSteps(choice, 20'000, 1000, 1200);
  EXPECT_EQ(later.changes, 1u);
  EXPECT_GE(later.asked, 10'000u);
}

TEST(LookaheadTuner, NoiseAloneChangesNothing) {
  LookaheadTuner choice(true);
  EXPECT_EQ(RunSteps(choice, 20'000, 1000, 1000).changes, 0u);
}

}  // namespace
}  // namespace hdps
