// Tests who counts as a straggler.
#include <gtest/gtest.h>

#include <memory>
#include <string_view>

#include "common/telemetry/meters.h"
#include "scheduler/picture/member_pace.h"

namespace hdps {
namespace {

constexpr int64_t kMs = 1'000'000;

size_t Stage(std::string_view name) {
  return static_cast<size_t>(std::ranges::find(kStageLabels, name) - kStageLabels.begin());
}

// A worker whose steps take as long as told.
struct Worker {
  explicit Worker(const FigureLayout& layout) : meters(layout), pace(layout) {}
  void Step(int64_t own_ms, int64_t wait_ms) {
    meters.Observe(FigureNamed("hdps_worker_step_seconds"), (own_ms + wait_ms) * kMs);
    const auto add = [&](const char* stage, int64_t ms) {
      meters.Add(FigureNamed("hdps_worker_stage_seconds_total"), static_cast<uint64_t>(ms * kMs),
                 Stage(stage));
    };
    add("compute", own_ms);
    add("reduce_dense", wait_ms);
    add("total", own_ms + wait_ms);
  }
  void Tell(TimeMs now) { pace.Take(now, std::make_shared<const Readings>(meters.Read())); }

  Meters meters;
  MemberPace pace;
};

// In sync all steps end together: the one that does not wait holds the others up.
TEST(MemberPace, TheOneThatDoesNotWaitIsTheStraggler) {
  const FigureLayout layout(FigureRole::kWorker, 1);
  Worker fast(layout), other(layout), slow(layout);
  for (int step = 1; step <= 30; ++step) {
    fast.Step(10, 10);
    other.Step(12, 8);
    slow.Step(20, 0);
    const TimeMs now = 1000 * step;
    for (Worker* worker : {&fast, &other, &slow}) worker->Tell(now);
    const double median =
        LowerMedian({fast.pace.OwnSeconds(), other.pace.OwnSeconds(), slow.pace.OwnSeconds()});
    EXPECT_NEAR(median, 0.012, 1e-12);
    for (Worker* worker : {&fast, &other, &slow}) worker->pace.Judge(median);
    EXPECT_EQ(slow.pace.slow_count(), static_cast<uint64_t>(step));
    EXPECT_EQ(slow.pace.is_straggler(), step >= 20);
  }
  EXPECT_NEAR(slow.pace.ratio(), 20.0 / 12, 1e-9);
  EXPECT_FALSE(other.pace.is_straggler());
  // As fast as the others again: it is none at once.
  for (int step = 31; step <= 45; ++step) {
    slow.Step(12, 8);
    slow.Tell(1000 * step);
  }
  slow.pace.Judge(0.012);
  EXPECT_FALSE(slow.pace.is_straggler());
}

TEST(MemberPace, StagesAreThoseOfTheLastSeconds) {
  const FigureLayout layout(FigureRole::kWorker, 0);
  Worker worker(layout);
  EXPECT_TRUE(worker.pace.StageSeconds().empty());
  for (int second = 0; second <= 100; ++second) {
    worker.Step(second < 50 ? 500 : 100, 100);
    worker.Tell(1000 * second);
  }
  const std::vector<double> seconds = worker.pace.StageSeconds();
  ASSERT_EQ(seconds.size(), ComputeStages().size() + 1);
  EXPECT_NEAR(seconds[2], 10 * 0.1, 1e-9);  // compute
  EXPECT_NEAR(seconds[3], 10 * 0.1, 1e-9);  // reduce_dense
  EXPECT_NEAR(seconds.back(), 0, 1e-9);
}

// A process in its place begins with zero, and one of another version is not understood.
TEST(MemberPace, BeginsAnewWithAnotherProcess) {
  const FigureLayout layout(FigureRole::kWorker, 0);
  Worker before(layout), after(layout);
  for (int step = 0; step < 30; ++step) {
    before.Step(30, 0);
    before.Tell(1000 * step);
    before.pace.Judge(0.01);
  }
  EXPECT_TRUE(before.pace.is_straggler());
  after.Step(10, 0);
  before.pace.Take(31'000, std::make_shared<const Readings>(after.meters.Read()));
  before.pace.Judge(0.01);
  EXPECT_FALSE(before.pace.is_straggler());
  EXPECT_EQ(before.pace.count(), 1u);
  before.pace.Take(32'000, std::make_shared<const Readings>(Readings{1, 2, 3}));
  before.pace.Take(32'000, nullptr);
  EXPECT_EQ(before.pace.count(), 1u);
}

TEST(MemberPace, OfTwoMembersTheFasterOneIsTheMeasure) {
  EXPECT_EQ(LowerMedian({}), 0);
  EXPECT_EQ(LowerMedian({0, 0}), 0);
  EXPECT_EQ(LowerMedian({3, 1}), 1);
  EXPECT_EQ(LowerMedian({3, 1, 2}), 2);
}

}  // namespace
}  // namespace hdps
