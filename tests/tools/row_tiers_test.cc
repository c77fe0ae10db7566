// Tests which rows stay in memory, against random draws and an LRU list.
#include "tools/plan/row_tiers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "common/planning/key_law.h"
#include "common/platform/random.h"
#include "embedding/disk/disk_rows.h"
#include "tools/synthetic/zipf.h"

namespace hdps {
namespace {

TEST(ExpectedDistinctTest, AgreesWithDraws) {
  for (const double exponent : {0.0, 1.05, 1.5}) {
    constexpr uint64_t kCount = 10'000;
    constexpr int kDraws = 4096;
    const Zipf zipf(kCount, exponent);
    Random random(7);
    double sum = 0;
    constexpr int kTimes = 20;
    for (int time = 0; time < kTimes; ++time) {
      std::set<uint64_t> seen;
      for (int draw = 0; draw < kDraws; ++draw) seen.insert(zipf.Draw(random));
      sum += static_cast<double>(seen.size());
    }
    EXPECT_NEAR(ExpectedDistinct(kCount, exponent, kDraws), sum / kTimes, 0.02 * sum / kTimes)
        << exponent;
  }
}

TEST(ExpectedDistinctTest, TheFirstValuesArePartOfAll) {
  const double all = ExpectedDistinct(10'000, 1, 4096);
  const double some = ExpectedDistinctOfFirst(1000, 10'000, 1, 4096);
  // Those are more likely, so they are more than a tenth of the values seen.
  EXPECT_GT(some, all / 10);
  EXPECT_LT(some, all);
  EXPECT_LT(some, 1000);
  EXPECT_NEAR(ExpectedDistinctOfFirst(1000, 10'000, 0, 1e9), 1000, 1e-6);
  EXPECT_NEAR(ExpectedDistinctOfFirst(20'000, 10'000, 1, 4096), all, 1e-9);
  // For one value it is the probability that it is drawn at all.
  EXPECT_NEAR(ExpectedDistinctOfFirst(1, 2, 0, 3), 1 - std::pow(0.5, 3), 1e-9);
}

TEST(ExpectedDistinctTest, IsAtMostWhatThereIs) {
  EXPECT_NEAR(ExpectedDistinct(3, 0, 1e6), 3, 1e-9);
  EXPECT_NEAR(ExpectedDistinct(1e9, 0, 10), 10, 1e-3);
  EXPECT_NEAR(ExpectedDistinct(1, 1.05, 5), 1, 1e-6);
}

TEST(DrawsUntilTest, IsTheOtherWayRound) {
  for (const double draws : {1.0, 100.0, 1e5}) {
    EXPECT_NEAR(DrawsUntil(1e6, 1.05, ExpectedDistinct(1e6, 1.05, draws)), draws, 1e-3 * draws);
  }
  EXPECT_TRUE(std::isinf(DrawsUntil(100, 1.05, 101)));
}

// Compares with an LRU list of rows, and keys drawn by the law.
TEST(RowTiersTest, AgreeWithAListOfTheLastUsed) {
  constexpr uint64_t kValues = 20'000;
  constexpr size_t kStep = 500;
  constexpr double kZipf = 1.05, kRowBytes = 100;
  JobShape shape;
  shape.tables.push_back({.name = "deep", .dim = 1, .row_bytes = 90, .features = 1});
  TierQuestion question = {
      .shape = shape, .values = kValues, .zipf = kZipf, .draws = kStep, .index_bytes = 10};
  const double found = double(DiskRows::PredictBytes(90, 1 << 20)) / (1 << 20);
  EXPECT_EQ(PlanTiers(question, kValues).share_in_memory, 0);
  question.bytes = kRowBytes * kValues;
  EXPECT_EQ(PlanTiers(question, kValues).rows_back, 0);
  for (const double share : {0.1, 0.25, 0.5}) {
    question.bytes = kValues * (share * kRowBytes + (1 - share) * found);
    const RowTiers tiers = PlanTiers(question, kValues);
    EXPECT_NEAR(tiers.share_in_memory, share, 1e-6);
    const Zipf zipf(kValues, kZipf);
    Random random(3);
    std::map<uint64_t, uint64_t> when;         // The last use of a key.
    std::map<uint64_t, uint64_t> by_last_use;  // The key of each last use.
    uint64_t now = 0, back = 0, steps = 0;
    for (uint64_t key = 0; key < kValues; ++key) {
      when[key] = ++now;
      by_last_use[now] = key;
    }
    for (int step = 0; step < 400; ++step) {
      std::set<uint64_t> keys;
      for (size_t draw = 0; draw < kStep; ++draw) keys.insert(zipf.Draw(random));
      auto oldest = by_last_use.end();
      std::advance(oldest, -static_cast<int64_t>(share * kValues));
      if (step >= 200) {
        for (const uint64_t key : keys) back += when[key] < oldest->first ? 1 : 0;
        ++steps;
      }
      for (const uint64_t key : keys) {
        by_last_use.erase(when[key]);
        by_last_use[when[key] = ++now] = key;
      }
    }
    const double measured = static_cast<double>(back) / static_cast<double>(steps);
    EXPECT_NEAR(tiers.rows_back, measured, 0.1 * measured) << share;
  }
}

}  // namespace
}  // namespace hdps
