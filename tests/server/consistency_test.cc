// Tests clock, ledger, gate and combiner, each alone, with what a network may do to them.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "common/platform/random.h"
#include "gtest/gtest.h"
#include "server/push_ledger.h"
#include "server/push_watermark.h"
#include "server/staleness_gate.h"
#include "server/step/sync_combiner.h"
#include "server/vector_clock.h"

namespace hdps {
namespace {

TEST(VectorClock, MinIsTheSlowestAndNeverGoesBack) {
  Random random(1);
  VectorClock clocks;
  std::map<WorkerId, Clock> model;
  Clock last = 0;
  for (uint32_t w = 0; w < 3; ++w) clocks.Join({w}), model[{w}] = 0;
  for (int i = 0; i < 5000; ++i) {
    const WorkerId worker{static_cast<uint32_t>(random.Below(6))};
    switch (random.Below(12)) {
      case 0:
        model.try_emplace(worker, clocks.min());
        clocks.Join(worker);
        break;
      case 1:
        model.erase(worker);
        clocks.Leave(worker);
        break;
      default: {
        const Clock to = last + static_cast<Clock>(random.Below(5)) - 2;
        if (model.count(worker) > 0) model[worker] = std::max(model[worker], to);
        clocks.Advance(worker, to);
      }
    }
    ASSERT_GE(clocks.min(), last);
    last = clocks.min();
    if (model.empty()) continue;
    Clock slowest = model.begin()->second;
    for (const auto& [w, clock] : model) slowest = std::min(slowest, clock);
    ASSERT_EQ(clocks.min(), slowest);
  }
  EXPECT_GT(last, 100);
}

TEST(VectorClock, ANewcomerStartsAtTheSlowest) {
  VectorClock clocks;
  clocks.Join({0});
  clocks.Advance({0}, 7);
  clocks.Join({1});
  EXPECT_EQ(clocks.of({1}), 7);
  clocks.Reset(3);
  EXPECT_EQ(clocks.min(), 3);
  EXPECT_EQ(clocks.of({0}), 3);
}

TEST(PushLedger, EachSequenceOnceThroughAWindow) {
  // A worker with a window of pushes in flight, over a network that repeats and reorders.
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const size_t window = 1 + random.Below(8);
    const uint64_t stride = 1 + random.Below(3);  // Sequences may have gaps at one server.
    PushLedger ledger(window);
    std::set<uint64_t> in_flight, taken;
    std::vector<uint64_t> network;       // Copies still on their way, however late.
    uint64_t next = random.Below(1000);  // A server that joins late does not see the beginning.
    for (int i = 0; i < 2000; ++i) {
      // At most `window` from the oldest unacknowledged push on, as in PsClient.
      const bool room = in_flight.empty() || next < *in_flight.begin() + window * stride;
      if (room && random.Below(2) == 0) {
        in_flight.insert(next);
        network.insert(network.end(), 1 + random.Below(3), next);
        next += stride;
      }
      if (network.empty()) continue;
      const size_t pick = random.Below(network.size());
      const uint64_t sequence = network[pick];
      network.erase(network.begin() + static_cast<ptrdiff_t>(pick));
      switch (ledger.Check({sequence})) {
        case PushLedger::Verdict::kFirst:
          ASSERT_TRUE(taken.insert(sequence).second) << "taken twice, seed " << seed;
          ledger.Record({sequence});
          in_flight.erase(sequence);
          break;
        case PushLedger::Verdict::kRepeat:
          ASSERT_TRUE(taken.count(sequence) > 0) << "lost, seed " << seed;
          break;
        case PushLedger::Verdict::kTooOld:
          ASSERT_EQ(in_flight.count(sequence), 0u) << "refused a live push, seed " << seed;
      }
      ASSERT_LE(ledger.size(), window);
    }
    EXPECT_GT(taken.size(), 50u);
  }
}

PullAdmission At(Clock clock) { return {clock, clock}; }

std::vector<int> Released(StalenessGate<int>& gate, Clock finished) {
  return gate.Release(finished, [](int) { return true; });
}

TEST(StalenessGate, LetsOutOldestFirstAndEachOnce) {
  StalenessGate<int> gate(2, 10);
  EXPECT_TRUE(gate.Admits(2, 0));
  EXPECT_FALSE(gate.Admits(3, 0));
  EXPECT_TRUE(gate.Park({1}, 1, At(5), 50));
  EXPECT_TRUE(gate.Park({2}, 1, At(3), 30));
  EXPECT_TRUE(gate.Park({3}, 1, At(3), 31));
  EXPECT_TRUE(gate.Park({2}, 1, At(3), 32));  // A repeat replaces the first.
  EXPECT_EQ(gate.size(), 3u);
  EXPECT_EQ(Released(gate, 0), std::vector<int>{});
  EXPECT_EQ(Released(gate, 1), (std::vector<int>{32, 31}));
  EXPECT_EQ(Released(gate, 1), std::vector<int>{});
  EXPECT_EQ(Released(gate, 100), std::vector<int>{50});
  EXPECT_EQ(gate.size(), 0u);
}

TEST(StalenessGate, BoundsEachWorkerAndForgets) {
  StalenessGate<int> gate(0, 2);
  EXPECT_TRUE(gate.Park({1}, 1, At(5), 1));
  EXPECT_TRUE(gate.Park({1}, 2, At(6), 2));
  EXPECT_FALSE(gate.Park({1}, 3, At(7), 3));
  EXPECT_TRUE(gate.Park({1}, 2, At(6), 4));  // A repeat needs no space.
  EXPECT_TRUE(gate.Park({2}, 1, At(5), 5));
  gate.RemoveWorker({1});
  EXPECT_EQ(Released(gate, 100), std::vector<int>{5});
  EXPECT_TRUE(gate.Park({1}, 1, At(200), 6));
}

TEST(StalenessGate, WhatIsAskedAheadComesBehindThePullsOfItsTurn) {
  StalenessGate<int> gate(0, 4);
  EXPECT_TRUE(gate.Park({1}, 2, {.clock = 5, .step = 6}, 61));
  EXPECT_TRUE(gate.Park({1}, 1, At(5), 51));  // Both are held: neither replaces the other.
  EXPECT_TRUE(gate.Park({2}, 1, At(5), 52));
  EXPECT_TRUE(gate.Park({2}, 2, {.clock = 6, .step = 7}, 72));
  EXPECT_TRUE(gate.Park({1}, 2, {.clock = 5, .step = 6}, 62));  // A repeat of the first request.
  EXPECT_EQ(gate.size(), 4u);
  EXPECT_EQ(Released(gate, 4), std::vector<int>{});
  EXPECT_EQ(Released(gate, 5), (std::vector<int>{51, 52, 62}));
  EXPECT_EQ(Released(gate, 6), std::vector<int>{72});
}

TEST(StalenessGate, UnboundedAdmitsEverything) {
  StalenessGate<int> gate(kUnboundedStaleness, 1);
  EXPECT_TRUE(gate.Admits(kUnboundedStaleness, 0));
}

TEST(StalenessGate, WhoIsNotReadyStaysAndHoldsNobodyUp) {
  StalenessGate<int> gate(0, 4);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(gate.Park({1}, static_cast<uint64_t>(i), At(i), i));
  const auto even = [](int pull) { return pull % 2 == 0; };
  EXPECT_EQ(gate.Release(2, even), (std::vector<int>{0, 2}));
  EXPECT_EQ(Released(gate, 3), (std::vector<int>{1, 3}));
}

TEST(PushWatermark, CountsWithoutAGapInAnyOrder) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    PushWatermark progress(5, 8);
    std::set<Clock> taken;
    Clock gap = 5;
    for (int i = 0; i < 300; ++i) {
      const Clock clock = gap + static_cast<Clock>(random.Below(8));  // As a worker may send them.
      progress.Add(clock);
      taken.insert(clock);
      if (random.Below(10) == 0) progress.Finish(gap);  // Repeats known progress.
      while (taken.count(gap) > 0) ++gap;
      ASSERT_EQ(progress.next(), gap) << "seed " << seed;
    }
  }
  PushWatermark progress(0, 2);
  progress.Finish(7);
  EXPECT_EQ(progress.next(), 7);
  progress.Add(3);
  EXPECT_EQ(progress.next(), 7);
  for (const Clock clock : {9, 11, 12}) progress.Add(clock);  // More than may be in flight.
  EXPECT_EQ(progress.next(), 10);
}

PlannedPush PushOf(Clock clock, uint64_t examples, uint32_t part = 0) {
  PlannedPush push;
  push.request.part = part;
  push.request.clock = clock;
  push.request.num_examples = examples;
  return push;
}

TEST(SyncCombiner, WaitsForAllAndOrdersByRank) {
  VectorClock clocks;
  for (uint32_t w = 0; w < 3; ++w) clocks.Join({w});
  SyncCombiner combiner(2, 1);
  combiner.Hold({2}, PushOf(0, 2));
  combiner.Hold({0}, PushOf(0, 0));
  EXPECT_FALSE(combiner.TakeComplete(clocks).has_value());
  EXPECT_TRUE(combiner.Holds({2}, 0, 0));
  EXPECT_FALSE(combiner.Holds({1}, 0, 0));
  combiner.Hold({0}, PushOf(1, 0));
  combiner.Hold({1}, PushOf(0, 1));
  const auto step = combiner.TakeComplete(clocks);
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->clock, 0);
  ASSERT_EQ(step->pushes.size(), 3u);
  for (uint64_t w = 0; w < 3; ++w) EXPECT_EQ(step->pushes[w].request.num_examples, w);
  EXPECT_FALSE(combiner.TakeComplete(clocks).has_value());
  EXPECT_EQ(combiner.next(), 1);
  EXPECT_FALSE(combiner.TooFarAhead(2));
  EXPECT_TRUE(combiner.TooFarAhead(3));
}

// With several parts a step, a worker's share is there with the last of them, whichever that is.
TEST(SyncCombiner, WaitsForAllPartsAndOrdersThem) {
  VectorClock clocks;
  for (uint32_t w = 0; w < 2; ++w) clocks.Join({w});
  SyncCombiner combiner(2, 3);
  // {worker, part}: as they arrive.
  const std::vector<std::pair<uint32_t, uint32_t>> order = {{1, 2}, {0, 1}, {1, 0},
                                                            {0, 2}, {1, 1}, {0, 0}};
  for (const auto& [worker, part] : order) {
    EXPECT_FALSE(combiner.TakeComplete(clocks).has_value());
    EXPECT_FALSE(combiner.HoldsAll({worker}, 0));
    EXPECT_FALSE(combiner.Holds({worker}, 0, part));
    combiner.Hold({worker}, PushOf(0, worker, part));
    EXPECT_TRUE(combiner.Holds({worker}, 0, part));
  }
  const auto step = combiner.TakeComplete(clocks);
  ASSERT_TRUE(step.has_value());
  ASSERT_EQ(step->pushes.size(), 6u);
  for (uint64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(step->pushes[i].request.num_examples, i / 3);
    EXPECT_EQ(step->pushes[i].request.part, i % 3);
  }
}

TEST(SyncCombiner, AWorkerThatHasPassedAStepIsNotWaitedFor) {
  VectorClock clocks;
  clocks.Join({0});
  clocks.Join({1});
  SyncCombiner combiner(4, 1);
  combiner.Hold({0}, PushOf(2, 1));
  clocks.Advance({1}, 3);
  EXPECT_FALSE(combiner.TakeComplete(clocks).has_value());  // Steps 0 and 1 are not finished.
  clocks.Advance({0}, 2);
  const auto step = combiner.TakeComplete(clocks);
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->clock, 2);
  EXPECT_EQ(step->pushes.size(), 1u);
  combiner.Reset(10);
  EXPECT_EQ(combiner.next(), 10);
  EXPECT_FALSE(combiner.TakeComplete(clocks).has_value());
}

}  // namespace
}  // namespace hdps
