// Tests admission and eviction as functions of a key's own history and its shard's.
#include "embedding/memory/row_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <vector>

#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "common/protocol/manifest_parts.h"
#include "embedding/table.h"

namespace hdps {
namespace {

TEST(FrequencySketch, CountsFewKeysExactly) {
  FrequencySketch sketch(1 << 16, 1);
  for (uint32_t time = 1; time <= 20; ++time) {
    for (Key key = 0; key < 40; ++key) {
      EXPECT_EQ(sketch.Count(MixBits(key)), std::min(time, 15u));
    }
  }
}

// Counts of n keys seen once each, before a new key: it is rarely taken for a known one.
TEST(FrequencySketch, RarelyTakesANewKeyForAnOldOne) {
  FrequencySketch sketch(1 << 20, 7);
  size_t wrong = 0;
  const uint64_t keys = sketch.window() - 1;
  for (Key key = 0; key < keys; ++key) wrong += sketch.Count(MixBits(key)) > 1 ? 1 : 0;
  // The average while it fills; the last keys meet a twentieth.
  EXPECT_LT(static_cast<double>(wrong), 0.02 * static_cast<double>(keys));
  EXPECT_GT(wrong, 0u);
}

// Larger counts have counters of more bits in the same memory.
TEST(FrequencySketch, CountsAsFarAsItIsAsked) {
  for (const uint32_t until : {16u, 100u, 255u, 256u, 1000u, 65535u}) {
    FrequencySketch sketch(1 << 16, 1, until);
    EXPECT_GE(sketch.count_max(), until);
    EXPECT_EQ(sketch.bytes(), FrequencySketch(1 << 16, 1).bytes());
    const uint32_t times = std::min(until, 2000u);
    for (uint32_t time = 1; time <= times; ++time) {
      for (Key key = 0; key < 5; ++key) ASSERT_EQ(sketch.Count(MixBits(key)), time) << until;
    }
  }
  FrequencySketch most(1 << 12, 1, 255);
  for (int time = 0; time < 260; ++time) most.Count(5);
  EXPECT_EQ(most.Count(5), 255u);
}

// The model zoo's minimum of 100: keys that come 70 times are not taken for such that come 100
// times, however many others share their counters, and those that come 100 times all are.
TEST(FrequencySketch, TellsSeventyFromAHundred) {
  FrequencySketch sketch(1 << 18, 7, 100);
  const uint64_t keys = sketch.window() / 86 - 1;
  std::vector<uint32_t> most(keys, 0);
  for (uint32_t time = 0; time < 100; ++time) {
    for (Key key = 0; key < keys; ++key) {
      if (key % 2 == 0 || time < 70) most[key] = sketch.Count(MixBits(key));
    }
  }
  size_t wrong = 0;
  for (Key key = 0; key < keys; ++key) {
    if (key % 2 == 0) {
      ASSERT_GE(most[key], 100u);
    } else {
      wrong += most[key] >= 100 ? 1 : 0;
    }
  }
  EXPECT_LE(static_cast<double>(wrong), 0.02 * static_cast<double>(keys)) << wrong;
}

TEST(FrequencySketch, HalvesCountersOfEachWidth) {
  for (const uint32_t until : {15u, 255u, 65535u}) {
    FrequencySketch sketch(64, 1, until);
    for (uint64_t n = 0; n + 1 < sketch.window(); ++n) sketch.Count(5);
    const uint32_t before = sketch.Seen(5);
    sketch.Count(5);
    EXPECT_EQ(sketch.Seen(5), std::min<uint64_t>(before + 1, sketch.count_max()) / 2) << until;
    for (const uint64_t word : sketch.state().first(8)) {
      uint64_t highest = 0;  // Of each counter.
      for (uint32_t bit = std::bit_width(sketch.count_max()) - 1; bit < 64;
           bit += std::bit_width(sketch.count_max())) {
        highest |= uint64_t{1} << bit;
      }
      EXPECT_EQ(word & highest, 0u);
    }
  }
}

TEST(FrequencySketch, NeverCountsLessBetweenHalvings) {
  FrequencySketch sketch(1 << 14, 3);
  for (Key key = 0; key < 1000; ++key) sketch.Count(MixBits(key));
  for (Key key = 0; key < 1000; ++key) EXPECT_GE(sketch.Count(MixBits(key)), 2u);
}

TEST(FrequencySketch, ForgetsWhatComesNoMore) {
  FrequencySketch sketch(1 << 12, 3);
  EXPECT_EQ(sketch.Count(5), 1u);
  for (uint64_t n = 0; n < 2 * sketch.window(); ++n) sketch.Count(MixBits(n + 100));
  // After two halvings nothing of the single sight is left, but others may share its counters.
  FrequencySketch other(1 << 12, 3);
  for (uint64_t n = 0; n < 2 * sketch.window(); ++n) other.Count(MixBits(n + 100));
  EXPECT_EQ(sketch.Count(5), other.Count(5));
}

TEST(FrequencySketch, StateIsAllOfIt) {
  FrequencySketch one(1 << 12, 3), two(1 << 12, 3);
  for (uint64_t n = 0; n < 700; ++n) one.Count(MixBits(n));
  std::ranges::copy(one.state(), two.state().begin());
  for (uint64_t n = 0; n < 3000; ++n) {
    const Key key = MixBits(n % 900);
    ASSERT_EQ(one.Count(key), two.Count(key)) << n;
  }
}

TableSpec TableWith(const PolicySpec& policy) {
  TableSpec spec;
  spec.name = "t";
  spec.dim = 4;
  spec.optimizer.record = &RecordOf(OptimizerKind::kSgd);
  spec.policy = policy;
  return spec;
}
RowPolicy PolicyOf(const PolicySpec& policy, uint32_t shard = 0, uint32_t shards = 1) {
  return {TableWith(policy), {0}, 1, {shard}, shards};
}

TEST(RowPolicy, ByDefaultEveryKeyStaysForever) {
  RowPolicy policy = PolicyOf({});
  EXPECT_TRUE(policy.admits_all());
  EXPECT_FALSE(policy.evicts());
  EXPECT_EQ(policy.floats(), 0u);
  EXPECT_EQ(policy.bytes(), 0u);
  EXPECT_EQ(RowStateFloats(TableWith({})), 0u);
}

TEST(RowPolicy, AdmitsWithTheNthUpdate) {
  RowPolicy policy = PolicyOf({.admit_after = 3});
  EXPECT_FALSE(policy.admits_all());
  for (const Key key : {Key{1}, Key{2}, ~Key{0}}) {
    EXPECT_FALSE(policy.Admits(key, 1));
    EXPECT_FALSE(policy.Admits(key, 2));
    EXPECT_TRUE(policy.Admits(key, 3));
  }
  EXPECT_GT(policy.bytes(), 0u);
  RowPolicy rare = PolicyOf({.admit_after = 100});
  for (int update = 1; update < 100; ++update) EXPECT_FALSE(rare.Admits(7, update));
  EXPECT_TRUE(rare.Admits(7, 100));
}

// Later epochs bring the keys of the first again, each only once.
TEST(RowPolicy, LaterEpochsAdmitWhoWasCountedInTheFirst) {
  RowPolicy policy = PolicyOf({.admit_after = 2});
  constexpr Key kOnce = 1, kTwice = 2, kLate = 3;
  EXPECT_FALSE(policy.Admits(kOnce, 1));
  EXPECT_FALSE(policy.Admits(kTwice, 1));
  EXPECT_TRUE(policy.Admits(kTwice, 2));
  const std::vector<uint64_t> counted(policy.sketch()->state().begin(),
                                      policy.sketch()->state().end());
  for (int64_t step = 3; step < 10; ++step) {
    EXPECT_FALSE(policy.Admits(kOnce, step, /*first_epoch=*/false));
    EXPECT_FALSE(policy.Admits(kLate, step, /*first_epoch=*/false));
    EXPECT_TRUE(policy.Admits(kTwice, step, /*first_epoch=*/false)) << "its row may have left";
  }
  EXPECT_TRUE(std::ranges::equal(policy.sketch()->state(), counted));
}

// A key counts as seen at the end of an epoch if it was counted in it, except for shared counters.
TEST(FrequencySketch, SeenIsWhatWasCounted) {
  FrequencySketch sketch(1 << 16, 1);
  EXPECT_EQ(sketch.Seen(5), 0u);
  for (Key key = 0; key < 40; ++key) {
    for (Key time = 0; time < key; ++time) sketch.Count(MixBits(key));
  }
  for (Key key = 0; key < 40; ++key) {
    EXPECT_EQ(sketch.Seen(MixBits(key)), std::min<uint64_t>(key, 15));
  }
}

TEST(RowPolicy, AdmitsByChanceThatIsTheSameEverywhere) {
  RowPolicy one = PolicyOf({.admit_probability = 0.25}, 0, 1);
  RowPolicy two = PolicyOf({.admit_probability = 0.25}, 3, 8);  // Another split of the same table.
  size_t admitted = 0, differ = 0;
  constexpr size_t kKeys = 20000;
  for (Key key = 0; key < kKeys; ++key) {
    const bool first = one.Admits(key, 1);
    ASSERT_EQ(first, two.Admits(key, 1));
    differ += first != one.Admits(key, 2) ? 1 : 0;
    admitted += first ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(admitted) / kKeys, 0.25, 0.01);
  // Drawn again in each step.
  EXPECT_NEAR(static_cast<double>(differ) / kKeys, 2 * 0.25 * 0.75, 0.01);
}

TEST(RowPolicy, RowsGrowOldAndAreLookedForInTurns) {
  std::set<int64_t> times;
  for (uint32_t shard = 0; shard < 4; ++shard) {
    RowPolicy policy = PolicyOf({.evict_after_steps = 32}, shard, 4);
    ASSERT_EQ(policy.floats(), 1u);
    std::vector<float> own = {0};
    policy.OnUpdate(100, own);
    EXPECT_FALSE(policy.IsOld(132, own));
    EXPECT_TRUE(policy.IsOld(133, own));
    int64_t due = 0;
    for (int64_t step = 1; step <= 32; ++step) due += policy.LooksForOldAfter(step) ? 1 : 0;
    EXPECT_EQ(due, 8);
    for (int64_t step = 1; step <= 4; ++step) {
      if (policy.LooksForOldAfter(step)) times.insert(step);
    }
  }
  EXPECT_EQ(times.size(), 4u);
}

// Rows leave by the step of their last update, which somebody else has found old; never by steps.
TEST(RowPolicy, RowsLeaveUntilAStep) {
  TableSpec spec;
  spec.policy.evict_after_seconds = 60;
  TableSlice slice(spec, TableId{0}, 7);
  const std::vector<float> gradient(spec.dim, 1.0f);
  for (int64_t step = 1; step <= 9; ++step) {
    const Key key = static_cast<Key>(step < 9 ? step : 2);
    const TableSlice::Gradients part{{&key, 1}, gradient, 1};
    slice.Apply({&part, 1}, 1, step);
    slice.EndStep(step);
  }
  EXPECT_EQ(slice.num_rows(), 8u);
  slice.MarkSaved(9);
  slice.EvictUntil(4, 10);
  EXPECT_EQ(slice.ErasedKeys(), (std::vector<Key>{1, 3, 4}));
  EXPECT_EQ(slice.counters().evicted, 3u);
  slice.EvictUntil(4, 10);
  EXPECT_EQ(slice.num_rows(), 5u);
}

TEST(RowPolicy, CapsAreSplitOverShards) {
  EXPECT_EQ(PolicyOf({.max_rows = 3200}, 0, 32).max_rows(), 100u);
  EXPECT_EQ(PolicyOf({.max_rows = 3200}, 0, 32).rows_left(), 94u);
  EXPECT_EQ(PolicyOf({.max_rows = 3}, 0, 32).max_rows(), 1u);
  // Four weights, a key, and the step that age needs.
  EXPECT_EQ(PolicyOf({.max_bytes = 32 * 28 * 10}, 0, 32).max_rows(), 10u);
}

std::vector<Key> ByRank(const RowPolicy& policy, const std::vector<std::vector<float>>& weights,
                        const std::vector<std::vector<float>>& own) {
  std::vector<Key> keys(weights.size());
  for (size_t k = 0; k < keys.size(); ++k) keys[k] = k;
  std::ranges::sort(keys, {}, [&](Key k) { return policy.Rank(k, weights[k], own[k]); });
  return keys;
}

TEST(RowPolicy, RanksByAgeUseAndNorm) {
  const std::vector<std::vector<float>> weights = {{1, 0}, {0.5f, 0}, {-2, 0}};
  std::vector<std::vector<float>> own(3, std::vector<float>(1));
  const RowPolicy age = PolicyOf({.max_rows = 10});
  for (size_t k = 0; k < 3; ++k) age.OnUpdate(std::vector<int64_t>{9, 5, 7}[k], own[k]);
  EXPECT_EQ(ByRank(age, weights, own), (std::vector<Key>{1, 2, 0}));

  const RowPolicy use = PolicyOf({.max_rows = 10, .evict_by = EvictBy::kUse});
  own.assign(3, std::vector<float>(1));
  for (size_t k = 0; k < 3; ++k) {
    for (int time = 0; time < std::vector<int>{3, 1, 2}[k]; ++time) use.OnUpdate(1, own[k]);
  }
  EXPECT_EQ(ByRank(use, weights, own), (std::vector<Key>{1, 2, 0}));

  const RowPolicy norm = PolicyOf({.max_rows = 10, .evict_by = EvictBy::kNorm});
  EXPECT_EQ(norm.floats(), 0u);
  EXPECT_EQ(ByRank(norm, weights, {{}, {}, {}}), (std::vector<Key>{1, 0, 2}));
  // The sum of squares, not of absolute values: {1, 1} is shorter than {1.5, 0}.
  EXPECT_EQ(ByRank(norm, {{1, 1}, {1.5f, 0}, {-3, 0}}, {{}, {}, {}}), (std::vector<Key>{0, 1, 2}));
}

TEST(RowPolicy, AgeAndUseCanGoTogether) {
  const RowPolicy policy =
      PolicyOf({.evict_after_steps = 5, .max_rows = 10, .evict_by = EvictBy::kUse});
  ASSERT_EQ(policy.floats(), 2u);
  std::vector<float> often(2), late(2);
  for (int step = 1; step <= 3; ++step) policy.OnUpdate(step, often);
  policy.OnUpdate(9, late);
  EXPECT_TRUE(policy.IsOld(9, often));
  EXPECT_FALSE(policy.IsOld(9, late));
  EXPECT_LT(policy.Rank(1, {}, late), policy.Rank(2, {}, often));
}

}  // namespace
}  // namespace hdps
