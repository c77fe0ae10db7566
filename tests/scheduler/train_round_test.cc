// Tests training rounds with workers that need each other: with any timing, all come to one clock.
#include "scheduler/plan/train_round.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "common/platform/random.h"

namespace hdps {
namespace {

// How a worker's step depends on the others.
enum class Coupling { kNone, kGate, kAllreduce };

// A worker as the round sees it: kTrain, kPause, and steps that take time.
struct SimulatedWorker {
  Clock clock = 0;
  std::optional<Clock> until;  // Set while it executes a kTrain.
  bool pause = false;
  bool in_step = false;  // A step that has begun is always finished.
};

// Simulates many workers, one epoch of `epoch_end` steps, and messages with random delays.
class Simulation {
 public:
  Simulation(uint64_t seed, Coupling coupling)
      : random_(seed),
        coupling_(coupling),
        workers_(1 + random_.Below(5)),
        epoch_end_(static_cast<Clock>(5 + random_.Below(40))),
        until_(random_.Below(2) == 0 ? epoch_end_ + 5 : 1 + static_cast<Clock>(random_.Below(40))),
        pause_at_(random_.Below(4) == 0 ? -1 : static_cast<TimeMs>(random_.Below(3000))),
        round_(static_cast<uint32_t>(workers_.size()), 0, until_) {}

  // Returns an empty text if all is well.
  std::string Run() {
    for (TimeMs now = 0; now < 60'000; now += 10) {
      if (now >= pause_at_ && pause_at_ >= 0) round_.Pause();
      for (const TrainRound::Order& order : round_.TakeOrders(now)) Deliver(order);
      for (uint32_t w = 0; w < workers_.size(); ++w) {
        if (random_.Below(3) == 0) Turn(w);
      }
      if (const auto odd = round_.OddOneOut()) return round_.Disagreement(*odd);
      if (round_.complete()) return Check();
    }
    return "the round never ended";
  }

 private:
  void Deliver(const TrainRound::Order& order) {
    SimulatedWorker& worker = workers_[order.worker];
    if (order.command == CommandKind::kPause) {
      worker.pause = worker.until.has_value();  // Applies only to the current command.
      return;
    }
    ASSERT_FALSE(worker.until) << "a second kTrain while one is out";
    ASSERT_LE(order.until, until_);
    worker.until = order.until;
  }

  // Returns whether this worker may do the step after its clock.
  bool Admitted(uint32_t w) const {
    return std::all_of(workers_.begin(), workers_.end(), [&](const SimulatedWorker& other) {
      switch (coupling_) {
        case Coupling::kNone:
          return true;
        case Coupling::kGate:
          return other.clock >= workers_[w].clock;
        case Coupling::kAllreduce:
          return other.clock > workers_[w].clock ||
                 (other.clock == workers_[w].clock && other.in_step);
      }
      return false;
    });
  }

  void Turn(uint32_t w) {
    SimulatedWorker& worker = workers_[w];
    if (random_.Below(10) == 0) round_.OnProgress(w, worker.clock);
    if (!worker.until) return;
    if (worker.in_step) {
      if (!Admitted(w)) return;
      worker.in_step = false;
      ++worker.clock;
      if (random_.Below(2) == 0) round_.OnProgress(w, worker.clock);
      return;
    }
    const bool end = worker.clock == epoch_end_;
    if (end || worker.pause || worker.clock >= *worker.until) {
      CommandDone done;
      done.clock = worker.clock;
      done.end_of_epoch = end;
      done.examples = static_cast<uint64_t>(worker.clock - answered_[w]);
      answered_[w] = worker.clock;
      worker.until.reset();
      worker.pause = false;
      round_.OnTrained(w, done);
      return;
    }
    worker.in_step = true;
  }

  std::string Check() {
    for (const SimulatedWorker& worker : workers_) {
      if (worker.clock != round_.clock()) return "workers stand at different clocks";
    }
    const Clock furthest = std::min(until_, epoch_end_);
    if (round_.clock() > furthest) return "trained too far";
    if (pause_at_ < 0 && round_.clock() != furthest) return "stopped without being told";
    if (round_.sums().examples != workers_.size() * static_cast<uint64_t>(round_.clock())) {
      return "examples were lost";
    }
    return "";
  }

  Random random_;
  const Coupling coupling_;
  std::vector<SimulatedWorker> workers_;
  const Clock epoch_end_;
  const Clock until_;
  const TimeMs pause_at_;
  TrainRound round_;
  Clock answered_[8] = {};
};

TEST(TrainRound, AllComeToOneClockHoweverTheyDependOnEachOther) {
  for (const Coupling coupling : {Coupling::kNone, Coupling::kGate, Coupling::kAllreduce}) {
    for (uint64_t seed = 0; seed < 400; ++seed) {
      EXPECT_EQ(Simulation(seed, coupling).Run(), "")
          << "coupling " << static_cast<int>(coupling) << ", seed " << seed;
    }
  }
}

CommandDone Trained(Clock clock, bool end_of_epoch = false) {
  CommandDone done;
  done.clock = clock;
  done.end_of_epoch = end_of_epoch;
  return done;
}

TEST(TrainRound, APauseThatOvertookItsTrainIsSaidAgain) {
  TrainRound round(1, 0, 100);
  EXPECT_EQ(round.TakeOrders(0).size(), 1u);
  round.Pause();
  ASSERT_EQ(round.TakeOrders(10).size(), 1u);
  EXPECT_TRUE(round.TakeOrders(20).empty());
  const std::vector<TrainRound::Order> again = round.TakeOrders(5000);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].command, CommandKind::kPause);
  round.OnTrained(0, Trained(3));
  EXPECT_TRUE(round.TakeOrders(9000).empty());
  EXPECT_TRUE(round.complete());
}

TEST(TrainRound, DifferentEndsOfOneEpochAreAFault) {
  TrainRound round(2, 0, 100);
  round.TakeOrders(0);
  round.OnTrained(0, Trained(10, true));
  EXPECT_FALSE(round.OddOneOut());
  round.OnTrained(1, Trained(11, true));
  EXPECT_EQ(round.OddOneOut(), 0u);
  EXPECT_NE(round.Disagreement(0).find("worker 0 came to the end of the epoch at step 10"),
            std::string::npos);
  EXPECT_FALSE(round.complete());
}

TEST(TrainRound, WhoStandsAloneIsToldFromTheOthers) {
  for (const Clock clock : {9, 11, 90}) {
    TrainRound round(3, 0, 100);
    round.TakeOrders(0);
    round.OnTrained(0, Trained(10, true));
    round.OnTrained(2, Trained(10, true));
    EXPECT_FALSE(round.OddOneOut());
    round.OnTrained(1, Trained(clock, true));
    EXPECT_EQ(round.OddOneOut(), 1u) << clock;
  }
  TrainRound round(2, 0, 100);
  round.TakeOrders(0);
  round.OnTrained(0, Trained(10, true));
  round.OnProgress(1, 11);
  EXPECT_EQ(round.OddOneOut(), 1u) << "it is behind an end that another has seen";
  EXPECT_NE(round.Disagreement(1).find("worker 1 is at step 11"), std::string::npos);
}

// A worker that has answered the first of two commands still executes the second.
TEST(TrainRound, WhoHasTwoOrdersOfASchedulerBeforeGetsNoThird) {
  TrainRound round(2, 0, 100);
  for (const uint32_t worker : {0u, 0u, 1u}) round.TakeOver(worker);
  EXPECT_TRUE(round.TakeOrders(0).empty());
  CommandDone done;
  done.clock = 6;
  round.OnTrained(0, done);
  round.OnProgress(1, 7);
  EXPECT_TRUE(round.TakeOrders(10).empty());
  done.clock = 8;
  round.OnTrained(0, done);
  round.OnTrained(1, done);
  EXPECT_TRUE(round.complete());
}

// Both answer a pause one after the other. Neither may be sent on for the other's sake, or they
// would be sent on in turns for ever.
TEST(TrainRound, WorkersWithoutRowsAnswerAPauseWhereTheyAre) {
  TrainRound round(2, 0, 100);
  round.TakeOrders(0);
  for (const uint32_t worker : {0u, 1u}) {
    round.OnProgress(worker, 5, TrainRound::Stand::kNoRows);
  }
  EXPECT_FALSE(round.OnlyStandingRun()) << "rows may come, so nothing ends the round";
  round.Pause();
  EXPECT_EQ(round.TakeOrders(10).size(), 2u);
  CommandDone done;
  done.clock = 5;
  round.OnTrained(0, done);
  EXPECT_TRUE(round.TakeOrders(20).empty());
  round.OnTrained(1, done);
  EXPECT_TRUE(round.complete());
  EXPECT_EQ(round.clock(), 5);
}

// A row came to the second after its last heartbeat.
TEST(TrainRound, AWorkerThatGotRowsMeanwhileIsFollowed) {
  TrainRound round(2, 0, 100);
  round.TakeOrders(0);
  for (const uint32_t worker : {0u, 1u}) {
    round.OnProgress(worker, 5, TrainRound::Stand::kNoRows);
  }
  round.Pause();
  round.TakeOrders(10);
  CommandDone done;
  done.clock = 5;
  round.OnTrained(0, done);
  done.clock = 6;
  round.OnTrained(1, done);
  const auto orders = round.TakeOrders(20);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].worker, 0u);
  EXPECT_EQ(orders[0].until, 6);
}

// The process that has a worker's place is given its last order again, and tells what both counted.
TEST(TrainRound, WhoTakesAPlaceAnswersForIt) {
  TrainRound round(2, 10, 20);
  EXPECT_EQ(round.TakeOrders(0).size(), 2u);
  CommandDone done;
  done.clock = 20;
  done.examples = 7;
  round.OnTrained(0, done);
  round.Replace(0);
  EXPECT_FALSE(round.complete());
  done.examples = 9;
  round.OnTrained(1, done);
  EXPECT_FALSE(round.complete());
  done.examples = 8;
  round.OnTrained(0, done);
  EXPECT_TRUE(round.complete());
  EXPECT_EQ(round.sums().examples, 17u);
}

TEST(TrainRound, OfOrdersThatWereTakenOverOnlyTheLastIsGivenToAReplacement) {
  TrainRound round(2, 0, 20);
  for (const uint32_t worker : {0u, 0u, 1u}) round.TakeOver(worker);
  CommandDone done;
  done.clock = 20;
  done.examples = 200;
  round.OnTrained(1, done);
  done.clock = 6;
  done.examples = 60;
  round.OnTrained(0, done);
  round.Replace(0);
  done.clock = 20;
  done.examples = 140;
  round.OnTrained(0, done);
  EXPECT_TRUE(round.complete());
  EXPECT_EQ(round.sums().examples, 400u);
}

TEST(TrainRound, WhoIsAskedAgainIsCountedOnceAndStandsWhereItStood) {
  TrainRound round(2, 10, 20);
  round.TakeOrders(0);
  CommandDone done;
  done.clock = 15;
  done.examples = 7;
  done.end_of_epoch = true;
  round.OnTrained(0, done);
  EXPECT_FALSE(round.runs(0));
  EXPECT_TRUE(round.runs(1));
  round.AskAgain(0);
  EXPECT_TRUE(round.runs(0));
  EXPECT_EQ(round.clock_of(0), 15);
  done.end_of_epoch = false;  // It has no step to make, and does not look for one.
  round.OnTrained(0, done);
  done.end_of_epoch = true;
  round.OnTrained(1, done);
  EXPECT_TRUE(round.complete());
  EXPECT_TRUE(round.end_of_epoch());
  EXPECT_EQ(round.sums().examples, 14u);
}

}  // namespace
}  // namespace hdps
