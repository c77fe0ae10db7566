// Tests which shards move for balance, when, and that an even load moves none.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "common/job/spec/cluster_spec.h"
#include "common/platform/random.h"
#include "common/protocol/status_messages.h"
#include "scheduler/balance/balance_plan.h"
#include "scheduler/balance/balancer.h"
#include "scheduler/balance/load_book.h"
#include "scheduler/balance/shard_placement.h"

namespace hdps {
namespace {

WorkPeriod PeriodOf(const std::vector<double>& busy_seconds, TimeMs lasted_ms = 10'000) {
  WorkPeriod work;
  work.lasted_ms = lasted_ms;
  for (const double busy : busy_seconds) work.shards.push_back({busy, busy * 1e6, 1 << 20});
  return work;
}

TEST(PlanBalance, HotShardsOfOneServerAreSpread) {
  const ShardMap even = EvenShards(32, 4);
  std::vector<double> busy(32, 0.01);
  std::fill_n(busy.begin(), 8, 0.6);  // All of server 0.
  const std::optional<BalancePlan> plan = PlanBalance(even, 4, PeriodOf(busy));
  ASSERT_TRUE(plan);
  EXPECT_GT(plan->before, 3.8);
  EXPECT_LE(plan->after, 1.2);
  EXPECT_LE(plan->moved, 8u);
  std::set<uint32_t> servers;
  for (const ServerId owner : plan->shards.owner) servers.insert(owner.value);
  EXPECT_EQ(servers.size(), 4u);
  EXPECT_NEAR(BusiestOverMean(BusySeconds(plan->shards, 4, PeriodOf(busy))), plan->after, 1e-9);
}

TEST(PlanBalance, OneHotShardStaysAndTheOthersLeaveIt) {
  std::vector<double> busy(8, 0.2);
  busy[0] = 1.0;
  const std::optional<BalancePlan> plan = PlanBalance(EvenShards(8, 2), 2, PeriodOf(busy));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->shards.owner[0], ServerId{0});
  EXPECT_LE(plan->after, 1.1);
}

TEST(PlanBalance, NothingMovesWhereItBringsLittle) {
  EXPECT_FALSE(PlanBalance(EvenShards(8, 2), 2, PeriodOf(std::vector<double>(8, 0.3))));
  // Below 1.3 times the mean.
  EXPECT_FALSE(PlanBalance(EvenShards(4, 2), 2, PeriodOf({1, 1.4, 1, 1})));
  // A single hot shard, which no other server could serve better.
  EXPECT_FALSE(PlanBalance(EvenShards(4, 2), 2, PeriodOf({2, 0, 0.001, 0.001})));
  // Servers are nearly idle: a move costs more than it saves.
  EXPECT_TRUE(PlanBalance(EvenShards(4, 2), 2, PeriodOf({1, 1, 0.1, 0.1})));
  EXPECT_FALSE(PlanBalance(EvenShards(4, 2), 2, PeriodOf({1e-3, 1e-3, 1e-4, 1e-4})));
  EXPECT_FALSE(PlanBalance(EvenShards(4, 1), 1, PeriodOf({1, 1, 0.1, 0.1})));
}

TEST(PlanBalance, LargeShardsStayAndNoServerIsLeftEmpty) {
  WorkPeriod work = PeriodOf({1, 1, 0.1, 0.1});
  work.shards[0].bytes = kMovedShardBytesMax + 1;
  const std::optional<BalancePlan> plan = PlanBalance(EvenShards(4, 2), 2, work);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->shards.owner[0], ServerId{0});
  EXPECT_EQ(plan->shards.owner[1], ServerId{1});
  work.shards[1].bytes = kMovedShardBytesMax + 1;
  EXPECT_FALSE(PlanBalance(EvenShards(4, 2), 2, work));
  EXPECT_FALSE(PlanBalance(EvenShards(2, 2), 2, PeriodOf({3, 0.1})));
}

TEST(PlanBalance, WhateverTheLoadsTheBusiestServerGetsLessBusy) {
  size_t plans = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const auto servers = static_cast<uint32_t>(2 + random.Below(6));
    std::vector<double> busy;
    for (int s = 0; s < 32; ++s) busy.push_back(random.Below(8) == 0 ? 1.0 : 0.02);
    const ShardMap even = EvenShards(32, servers);
    const std::optional<BalancePlan> plan = PlanBalance(even, servers, PeriodOf(busy));
    if (!plan) continue;
    ++plans;
    EXPECT_LT(plan->after, plan->before) << seed;
    for (uint32_t server = 0; server < servers; ++server) {
      EXPECT_FALSE(plan->shards.ShardsOf({server}).empty()) << seed;
    }
  }
  EXPECT_GT(plans, 500u);
}

// Two servers with two shards each, which tell their loads every second.
class BalancerTest : public ::testing::Test {
 protected:
  BalancerTest() {
    cluster_.balance_after_s = 8;
    view_.view = view_.placed = {1};
    view_.servers = {{{11}, 0, "a"}, {{12}, 1, "b"}};
    view_.shards = EvenShards(4, 2);
  }
  // Lets `seconds` pass in which each shard takes so much of each; returns the first plan.
  std::optional<BalancePlan> Pass(int seconds, const std::vector<double>& busy, bool trains = true,
                                  bool may_move = true) {
    for (int second = 0; second < seconds; ++second) {
      now_ += 1000;
      for (uint32_t s = 0; s < 4; ++s) {
        loads_[s].shard = {s};
        loads_[s].busy_ns += static_cast<uint64_t>(busy[s] * 1e9);
        loads_[s].rows += 1000;
        balancer().OnHeartbeat(view_.servers[view_.shards.owner[s].value].peer, {loads_[s]});
      }
      std::optional<BalancePlan> plan = balancer().Look(view_, trains, may_move, now_);
      if (plan) return plan;
    }
    return std::nullopt;
  }
  Balancer& balancer() {
    if (!balancer_) balancer_.emplace(cluster_);
    return *balancer_;
  }

  const std::vector<double> hot_ = {0.4, 0.4, 0.05, 0.05}, even_ = {0.2, 0.2, 0.2, 0.2};
  ClusterSpec cluster_;
  View view_;
  ShardLoad loads_[4];
  TimeMs now_ = 0;
  std::optional<Balancer> balancer_;
};

TEST_F(BalancerTest, AServerMustBeTooBusyForAWhile) {
  EXPECT_FALSE(Pass(600, even_));
  EXPECT_FALSE(Pass(5, hot_));
  EXPECT_FALSE(Pass(4, even_));
  EXPECT_FALSE(Pass(7, hot_));
  const std::optional<BalancePlan> plan = Pass(6, hot_);
  ASSERT_TRUE(plan);
  EXPECT_LE(plan->after, 1.05);
}

TEST_F(BalancerTest, NowThisServerAndNowThatOneIsNoise) {
  for (int turn = 0; turn < 60; ++turn) {
    EXPECT_FALSE(Pass(2, turn % 2 == 0 ? hot_ : std::vector<double>{0.05, 0.05, 0.4, 0.4}));
  }
}

TEST_F(BalancerTest, MovesAreRare) {
  ASSERT_TRUE(Pass(20, hot_));
  balancer().Moved(1, now_);
  EXPECT_FALSE(Pass(15, hot_));
  EXPECT_TRUE(Pass(10, hot_));
  EXPECT_EQ(balancer().shards_moved(), 1u);
}

TEST_F(BalancerTest, AJobAtRestAndOtherChangesOfMembersComeFirst) {
  EXPECT_FALSE(Pass(60, hot_, /*trains=*/false));
  EXPECT_FALSE(Pass(60, hot_, /*trains=*/true, /*may_move=*/false));
  EXPECT_TRUE(Pass(10, hot_));
}

TEST_F(BalancerTest, OffAndMemoryLimitsMoveNothing) {
  cluster_.balance = Balance::kOff;
  EXPECT_FALSE(Pass(60, hot_));
  StatusReply status;
  balancer().AddTo(&status);
  EXPECT_EQ(status.hot_shards.size(), 4u);  // They are told all the same.
  balancer_.reset();
  cluster_.balance = Balance::kAuto;
  cluster_.memory_limit = 1 << 30;
  EXPECT_FALSE(Pass(60, hot_));
}

TEST_F(BalancerTest, AServerThatDoesNotTellIsNotJudged) {
  for (int second = 0; second < 60; ++second) {
    now_ += 1000;
    loads_[0].busy_ns += 900'000'000;
    balancer().OnHeartbeat({11}, {loads_[0], {{1}, loads_[0].busy_ns, 5, 0}});
    EXPECT_FALSE(balancer().Look(view_, true, true, now_));
  }
  // What a stranger or a backup tells counts for nothing.
  balancer().OnHeartbeat({99}, {{{2}, 1, 1, 1}, {{3}, 1, 1, 1}, {{70}, 1, 1, 1}});
  StatusReply status;
  balancer().AddTo(&status);
  EXPECT_TRUE(status.hot_shards.empty());
}

TEST_F(BalancerTest, TheHottestShardsAreNamed) {
  Pass(6, {0.1, 0.4, 0.05, 0});
  StatusReply status;
  balancer().AddTo(&status);
  ASSERT_EQ(status.hot_shards.size(), 3u);
  EXPECT_EQ(status.hot_shards[0].shard, ShardId{1});
  EXPECT_EQ(status.hot_shards[0].server, ServerId{0});
  EXPECT_NEAR(status.hot_shards[0].busy, 0.4, 0.01);
  EXPECT_NEAR(status.busiest_over_mean, 0.5 / 0.275, 0.05);
}

TEST_F(BalancerTest, APlaceThatHasChangedBeginsAnew) {
  EXPECT_FALSE(Pass(7, hot_));
  view_.view = view_.placed = {2};
  std::swap(view_.shards.owner[1], view_.shards.owner[2]);
  EXPECT_FALSE(Pass(7, {0.4, 0.05, 0.4, 0.05}));
  EXPECT_TRUE(Pass(6, {0.4, 0.05, 0.4, 0.05}));
}

}  // namespace
}  // namespace hdps
