// Tests which steps are so old that rows without an update since leave.
#include "scheduler/plan/row_ages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"

namespace hdps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Job WithLimits(const std::vector<uint64_t>& seconds) {
  Job job;
  for (const uint64_t limit : seconds) {
    job.tables.emplace_back();
    job.tables.back().policy.evict_after_seconds = limit;
  }
  return job;
}

TEST(RowAgesTest, ATimeIsDueAnEighthOfTheShortestLimitAfterTheLast) {
  const RowAges ages(WithLimits({0, 80, 16}));
  EXPECT_FALSE(ages.Due({}, 1999));
  EXPECT_TRUE(ages.Due({}, 2000));
  EXPECT_FALSE(ages.Due({{5, 2500}}, 4499));
  EXPECT_TRUE(ages.Due({{5, 2500}}, 4500));
  EXPECT_FALSE(RowAges(WithLimits({0, 0})).Due({}, 1'000'000'000));
}

TEST(RowAgesTest, TheNewestStepBeyondTheLimitCounts) {
  const RowAges ages(WithLimits({0, 80, 16}));
  std::vector<StepTime> times;
  EXPECT_THAT(ages.LastSteps(times), ElementsAre(0, 0, 0));
  ages.Note({100, 2000}, &times);
  ages.Note({150, 4000}, &times);
  ages.Note({900, 17'999}, &times);
  EXPECT_THAT(ages.LastSteps(times), ElementsAre(0, 0, 0));
  ages.Note({910, 20'000}, &times);
  EXPECT_THAT(ages.LastSteps(times), ElementsAre(0, 0, 150));
  ages.Note({2000, 84'000}, &times);
  EXPECT_THAT(ages.LastSteps(times), ElementsAre(0, 150, 910));
  // Nobody asks for the first one any more.
  EXPECT_EQ(times.front(), (StepTime{150, 4000}));
}

// A short limit beside a long one must not fill the manifest.
TEST(RowAgesTest, TheNumberOfTimesIsBounded) {
  const RowAges ages(WithLimits({1, 1'000'000'000}));
  std::vector<StepTime> times;
  TimeMs now = 0;
  for (Clock clock = 1; clock < 5000; ++clock) {
    while (!ages.Due(times, now)) now += 500'000'000;
    ages.Note({clock, now}, &times);
    ASSERT_LE(times.size(), kStepTimesMax);
  }
  EXPECT_GT(times.size(), size_t{100});
}

}  // namespace
}  // namespace hdps
