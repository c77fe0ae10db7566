// Tests what a replay makes of the files of a record.
#include "tools/replay/replay_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/platform/file_system.h"
#include "tools/replay/kept_order.h"

namespace hdps {
namespace {

using enum OrderKind;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

OrderEntry E(OrderKind kind, uint32_t worker, Clock step) { return {kind, {worker}, step, 0}; }

// Steps of one worker at one server, with nothing between them.
void AddSteps(Clock begin, Clock end, uint32_t workers, std::vector<OrderItem>* items) {
  items->emplace_back(GroupMark{{0}});
  for (Clock step = begin; step < end; ++step) {
    for (const OrderKind kind : {kTrainPull, kPush, kAdvance}) {
      for (uint32_t worker = 0; worker < workers; ++worker)
        items->emplace_back(E(kind, worker, step));
    }
  }
}

// The same of worker `ahead` alone, and then of worker `behind`.
void AddApart(Clock begin, Clock end, uint32_t ahead, uint32_t behind,
              std::vector<OrderItem>* items) {
  items->emplace_back(GroupMark{{0}});
  for (const uint32_t worker : {ahead, behind}) {
    for (Clock step = begin; step < end; ++step) {
      for (const OrderKind kind : {kTrainPull, kPush, kAdvance})
        items->emplace_back(E(kind, worker, step));
    }
  }
}

ViewMark View(uint64_t id, uint32_t workers) { return {{id}, workers, {{0}, {0}}, {{0}}}; }

NamedOrderFile File(const std::vector<OrderItem>& items) {
  return {"a.order", {{7, Mode::kAsync}, items, false}};
}

TEST(KeptOrderTest, ThePullWhoseRowsWereUsedIsKept) {
  LeftOut left_out;
  // A pull ahead of step 1 was in vain: the worker paused, and asked for all rows anew.
  const std::vector<OrderEntry> all = {E(kPrefetch, 0, 1), E(kTrainPull, 0, 0), E(kPush, 0, 0),
                                       E(kAdvance, 0, 0),  E(kTrainPull, 0, 1), E(kPush, 0, 1),
                                       E(kAdvance, 0, 1),  E(kTrainPull, 0, 2)};
  EXPECT_THAT(KeptOrder(all, 2, &left_out),
              ElementsAre(E(kTrainPull, 0, 0), E(kPush, 0, 0), E(kAdvance, 0, 0),
                          E(kTrainPull, 0, 1), E(kPush, 0, 1), E(kAdvance, 0, 1)));
  EXPECT_EQ(left_out.again, 0u);
}

TEST(KeptOrderTest, APullAheadGoesWithTheRepairBehindIt) {
  LeftOut left_out;
  const std::vector<OrderEntry> all = {E(kPrefetch, 0, 3), E(kRefresh, 0, 3), E(kPrefetch, 0, 3),
                                       E(kRefresh, 0, 3), E(kPush, 0, 3)};
  EXPECT_THAT(KeptOrder(all, 9, &left_out),
              ElementsAre(E(kPrefetch, 0, 3), E(kRefresh, 0, 3), E(kPush, 0, 3)));
}

TEST(KeptOrderTest, RequestsBehindThePushAreCounted) {
  LeftOut left_out;
  const std::vector<OrderEntry> all = {E(kTrainPull, 0, 3), E(kPush, 0, 3), E(kTrainPull, 0, 3)};
  EXPECT_EQ(KeptOrder(all, 9, &left_out).size(), 2u);
  EXPECT_EQ(left_out.again, 1u);
}

TEST(KeptOrderTest, PushesBehindTheEndThatAPullHadSeenAreCounted) {
  LeftOut left_out;
  const std::vector<OrderEntry> all = {E(kPush, 1, 1),      E(kPush, 1, 2), E(kPush, 1, 3),
                                       E(kTrainPull, 0, 1), E(kPush, 0, 1), E(kPush, 1, 4),
                                       E(kTrainPull, 0, 2)};
  KeptOrder(all, 2, &left_out);
  EXPECT_EQ(left_out.pushes, 2u);
}

// A backup that leads after a loss may record it again.
TEST(KeptOrderTest, AnAdvanceIsKeptOnce) {
  LeftOut left_out;
  const std::vector<OrderEntry> all = {E(kAdvance, 0, 4), E(kAdvance, 0, 4), E(kAdvance, 1, 4),
                                       E(kAdvance, 0, 5)};
  EXPECT_THAT(KeptOrder(all, 9, &left_out),
              ElementsAre(E(kAdvance, 0, 4), E(kAdvance, 1, 4), E(kAdvance, 0, 5)));
}

TEST(ReplayPlanTest, WhatALossThrewAwayIsLeftOut) {
  std::vector<OrderItem> items = {View(1, 2)};
  AddSteps(0, 50, 2, &items);
  items.emplace_back(View(2, 2));
  items.emplace_back(LoadMark{30});
  AddSteps(30, 45, 2, &items);
  items.emplace_back(View(3, 1));
  items.emplace_back(LoadMark{40});
  AddSteps(40, 60, 1, &items);
  items.emplace_back(DigestMark{{1, 2}, 60, true});
  const Result<ReplayPlan> plan = PlanReplay({File(items)}, std::nullopt);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_EQ(plan->segments.size(), 3u);
  const std::vector<Clock> begins = {0, 30, 40}, ends = {30, 40, 60};
  for (size_t i = 0; i < 3; ++i) {
    const ReplaySegment& segment = plan->segments[i];
    EXPECT_EQ(segment.begin, begins[i]);
    EXPECT_EQ(segment.end, ends[i]);
    EXPECT_EQ(segment.workers, i == 2 ? 1u : 2u);
    EXPECT_EQ(segment.orders[0].size(),
              static_cast<size_t>(ends[i] - begins[i]) * 3 * segment.workers);
  }
  ASSERT_TRUE(plan->digest.has_value());
  EXPECT_EQ((*plan->digest)[1], 2u);
  EXPECT_TRUE(plan->whole);
}

TEST(ReplayPlanTest, ItEndsWhereItIsTold) {
  std::vector<OrderItem> items = {View(1, 1)};
  AddSteps(0, 50, 1, &items);
  items.emplace_back(DigestMark{{1, 2}, 50, true});
  const Result<ReplayPlan> plan = PlanReplay({File(items)}, 20);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->segments.back().end, 20);
  EXPECT_FALSE(plan->digest.has_value());
  EXPECT_FALSE(plan->whole);
  EXPECT_THAT(PlanReplay({File(items)}, 51).status().message(),
              HasSubstr("--until=51: the record ends at step 50"));
}

TEST(ReplayPlanTest, AnEndBehindWhichPullsHadSeenPushesIsTold) {
  std::vector<OrderItem> items = {View(1, 2)};
  AddSteps(0, 10, 2, &items);
  AddApart(10, 20, 1, 0, &items);
  items.emplace_back(DigestMark{{1, 2}, 20, true});
  const std::vector<NamedOrderFile> record = {File(items)};
  for (const Clock exact : {4, 10, 20}) {
    const Result<ReplayPlan> plan = PlanReplay(record, exact);
    ASSERT_TRUE(plan.ok());
    EXPECT_THAT(plan->warnings, IsEmpty()) << exact;
  }
  const Result<ReplayPlan> plan = PlanReplay(record, 12);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(
      plan->warnings,
      ElementsAre(AllOf(HasSubstr("8 pushes of faster workers from step 12 on are left out"),
                        HasSubstr("is --until=10"))));
  // Nothing of the record is exact before this end.
  std::vector<OrderItem> apart = {View(1, 2)};
  AddApart(0, 5, 1, 0, &apart);
  const Result<ReplayPlan> at_4 = PlanReplay({File(apart)}, 4);
  ASSERT_TRUE(at_4.ok());
  EXPECT_THAT(at_4->warnings,
              ElementsAre(AllOf(HasSubstr("1 push of faster workers from step 4 on is left out"),
                                Not(HasSubstr("--until")))));
}

TEST(ReplayPlanTest, ARunThatWasCutOffEndsWhereAllHaveBeen) {
  std::vector<OrderItem> items = {View(1, 2)};
  AddSteps(0, 10, 2, &items);
  AddSteps(10, 14, 1, &items);
  const Result<ReplayPlan> plan = PlanReplay({File(items)}, std::nullopt);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->segments.back().end, 10);
  EXPECT_FALSE(plan->digest.has_value());
  EXPECT_THAT(plan->warnings, ElementsAre("a.order ends without the run's end: the replay goes to "
                                          "step 10, and nothing is compared"));
  const Result<ReplayPlan> asked = PlanReplay({File(items)}, 8);
  ASSERT_TRUE(asked.ok());
  EXPECT_THAT(asked->warnings, IsEmpty());
}

// The server of the first view was killed with its last steps unwritten, and its backup went on.
TEST(ReplayPlanTest, StepsThatALostServerDidNotWriteAreNamed) {
  std::vector<OrderItem> lost = {View(1, 2)}, backup = {View(2, 2)};
  AddSteps(0, 10, 2, &lost);
  AddSteps(13, 20, 2, &backup);
  backup.emplace_back(DigestMark{{1, 2}, 20, true});
  NamedOrderFile other = File(backup);
  other.name = "b.order";
  const Result<ReplayPlan> plan = PlanReplay({File(lost), other}, std::nullopt);
  EXPECT_THAT(plan.status().message(), AllOf(HasSubstr("the record of server 0 ends at step 10"),
                                             HasSubstr("give --until=10 at most")));
  EXPECT_TRUE(PlanReplay({File(lost), other}, 10).ok());
}

TEST(ReplayPlanTest, StepsThatAReplacementRepeatsAreTold) {
  std::vector<OrderItem> items = {View(1, 1)};
  AddSteps(0, 3, 1, &items);
  items.emplace_back(E(kTrainPull, 0, 2));
  items.emplace_back(DigestMark{{1, 2}, 3, true});
  const Result<ReplayPlan> plan = PlanReplay({File(items)}, std::nullopt);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->warnings, ElementsAre(HasSubstr("its replacement sent 1 request of steps")));
}

TEST(ReplayPlanTest, AViewInWhichNothingHappenedIsSkipped) {
  std::vector<OrderItem> items = {View(1, 2), View(2, 1), LoadMark{20}};
  AddSteps(20, 30, 1, &items);
  items.emplace_back(DigestMark{{1, 2}, 30, true});
  const Result<ReplayPlan> plan = PlanReplay({File(items)}, std::nullopt);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  ASSERT_EQ(plan->segments.size(), 1u);
  EXPECT_EQ(plan->segments[0].begin, 20);
  EXPECT_THAT(PlanReplay({File({View(1, 2)})}, std::nullopt).status().message(),
              HasSubstr("the record has no step"));
}

TEST(ReplayPlanTest, StepsAskedForAheadAreToldFromOthers) {
  std::vector<OrderItem> items = {View(1, 1), GroupMark{{0}}};
  for (const Clock step : {0, 1, 2, 3}) {
    if (step % 2 == 0) items.emplace_back(E(kTrainPull, 0, step));
    if (step % 2 == 1) items.emplace_back(E(kPrefetch, 0, step));
    if (step % 2 == 1) items.emplace_back(E(kRefresh, 0, step));
    items.emplace_back(E(kPush, 0, step));
    items.emplace_back(E(kAdvance, 0, step));
  }
  const Result<ReplayPlan> plan = PlanReplay({File(items)}, std::nullopt);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->segments[0].asked_whole, ElementsAre(ElementsAre(0, 2)));
}

TEST(ReplayPlanTest, TheFilesOfTwoRunsOrOfTooFewServersAreRefused) {
  std::vector<OrderItem> items = {View(1, 1)};
  AddSteps(0, 5, 1, &items);
  NamedOrderFile other = File(items);
  other.name = "b.order";
  EXPECT_THAT(PlanReplay({File(items), other}, std::nullopt).status().message(),
              HasSubstr("the records of two runs"));
  ViewMark two = View(1, 1);
  two.owner = {{0}, {1}};
  items[0] = two;
  EXPECT_THAT(PlanReplay({File(items)}, std::nullopt).status().message(),
              HasSubstr("no file of server 1 in view 1"));
  other.file.header.job_digest = 8;
  EXPECT_THAT(PlanReplay({File(items), other}, std::nullopt).status().message(),
              HasSubstr("of another job"));
}

TEST(ReplayPlanTest, AFolderWithoutARecordIsRefused) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  uint64_t bytes = 0;
  EXPECT_THAT(ReadRecord(*files, "none", &bytes).status().message(),
              HasSubstr("--record=none holds no record"));
}

}  // namespace
}  // namespace hdps
