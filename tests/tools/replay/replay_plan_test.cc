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
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

ViewMark View(uint64_t id, uint32_t workers) { return {{id}, workers, {{0}, {0}}, {{0}}}; }

NamedOrderFile File(const std::vector<OrderItem>& items) {
  return {"a.order", {{7, Mode::kAsync}, items, false}};
}

TEST(KeptOrderTest, ThePullWhoseRowsWereUsedIsKept) {
  uint64_t again = 0;
  // A pull ahead of step 1 was in vain: the worker paused, and asked for all rows anew.
  const std::vector<OrderEntry> all = {E(kPrefetch, 0, 1), E(kTrainPull, 0, 0), E(kPush, 0, 0),
                                       E(kAdvance, 0, 0),  E(kTrainPull, 0, 1), E(kPush, 0, 1),
                                       E(kAdvance, 0, 1),  E(kTrainPull, 0, 2)};
  EXPECT_THAT(KeptOrder(all, 2, &again),
              ElementsAre(E(kTrainPull, 0, 0), E(kPush, 0, 0), E(kAdvance, 0, 0),
                          E(kTrainPull, 0, 1), E(kPush, 0, 1), E(kAdvance, 0, 1)));
  EXPECT_EQ(again, 0u);
}

TEST(KeptOrderTest, APullAheadGoesWithTheRepairBehindIt) {
  uint64_t again = 0;
  const std::vector<OrderEntry> all = {E(kPrefetch, 0, 3), E(kRefresh, 0, 3), E(kPrefetch, 0, 3),
                                       E(kRefresh, 0, 3), E(kPush, 0, 3)};
  EXPECT_THAT(KeptOrder(all, 9, &again),
              ElementsAre(E(kPrefetch, 0, 3), E(kRefresh, 0, 3), E(kPush, 0, 3)));
}

TEST(KeptOrderTest, RequestsBehindThePushAreCounted) {
  uint64_t again = 0;
  const std::vector<OrderEntry> all = {E(kTrainPull, 0, 3), E(kPush, 0, 3), E(kTrainPull, 0, 3)};
  EXPECT_EQ(KeptOrder(all, 9, &again).size(), 2u);
  EXPECT_EQ(again, 1u);
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

TEST(ReplayPlanTest, ARunThatWasCutOffEndsWhereAllHaveBeen) {
  std::vector<OrderItem> items = {View(1, 2)};
  AddSteps(0, 10, 2, &items);
  AddSteps(10, 14, 1, &items);
  const Result<ReplayPlan> plan = PlanReplay({File(items)}, std::nullopt);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->segments.back().end, 10);
  EXPECT_FALSE(plan->digest.has_value());
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
