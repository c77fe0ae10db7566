// Tests training from one common clock to the next, with worker 0 storing the dense layers.
#include "scheduler/phases/train.h"

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "scheduler/phases/evict.h"
#include "scheduler/phases/store_dense.h"
#include "tests/scheduler/phases/phase_fixture.h"

namespace hdps {
namespace {

using What = Next::What;

Job TenSteps() {
  Job job;
  job.name = "ten";
  job.cluster.shards = 4;
  job.train.max_steps = 10;
  return job;
}

CommandDone Trained(Clock clock, uint64_t examples, bool end_of_epoch = false) {
  CommandDone done;
  done.clock = clock;
  done.examples = examples;
  done.loss_sum = 1.5;
  done.end_of_epoch = end_of_epoch;
  return done;
}

class TrainPhaseTest : public PhaseTest {
 protected:
  TrainPhaseTest() : PhaseTest(TenSteps()) {
    job_.plan.emplace(*spec_, JobPosition(), JobPlan::Past());
  }
  TrainPhase train_{parts_};
};

TEST_F(TrainPhaseTest, TheRoundEndsWhereAllStandAndItsSumsAreTheJobs) {
  EXPECT_EQ(Begin(train_).what, What::kWait);
  EXPECT_EQ(told(), "21: train 10, 22: train 10");
  EXPECT_EQ(job_.training_since, now_);
  EXPECT_EQ(Done(train_, kWorkers[0], Trained(10, 40)).what, What::kWait);
  EXPECT_EQ(AllAnswered(train_).what, What::kWait);  // The other still trains.
  Done(train_, kWorkers[1], Trained(10, 60));
  now_ += 700;
  EXPECT_EQ(AllAnswered(train_).what, What::kDone);
  EXPECT_EQ(job_.plan->position().clock, 10);
  EXPECT_EQ(job_.record.trained.examples, 100u);
  EXPECT_EQ(job_.record.epoch.loss_sum, 3.0);
  EXPECT_EQ(job_.record.training_ms, 700);
  EXPECT_FALSE(job_.training_since);
}

TEST_F(TrainPhaseTest, AStopPausesAndWhoIsBehindCatchesUp) {
  Begin(train_);
  told();
  job_.record.stop = true;
  Tick(train_, 1020);
  EXPECT_EQ(told(), "21: pause, 22: pause");
  orders_.sent.resize(2);  // Answers the commands to train.
  Done(train_, kWorkers[0], Trained(4, 16));
  Done(train_, kWorkers[1], Trained(5, 20));
  EXPECT_EQ(AllAnswered(train_).what, What::kWait);
  EXPECT_EQ(orders_.sent.back().command.until, 5);
  Done(train_, kWorkers[0], Trained(5, 4));
  EXPECT_EQ(AllAnswered(train_).what, What::kDone);
  EXPECT_EQ(job_.plan->position().clock, 5);
  EXPECT_TRUE(job_.plan->stopped());
}

Job SavesByTheClock() {
  Job job = TenSteps();
  job.checkpoint.every_seconds = 30;
  job.checkpoint.delta_every_seconds = 5;
  return job;
}

class TimedSaveTest : public PhaseTest {
 protected:
  TimedSaveTest() : PhaseTest(SavesByTheClock()) {
    job_.plan.emplace(*spec_, JobPosition(), JobPlan::Past());
    job_.save_times.Begin(now_);
  }
  // Trains from `clock` - 1 on until `at`, when both workers say that they wait for rows at
  // `clock`, and returns whether a save follows there.
  bool SavesAt(Clock clock, TimeMs at) {
    TrainPhase train(parts_);
    Begin(train);
    const size_t orders = orders_.sent.size();
    told();
    for (uint32_t w : {0, 1}) train.OnProgress(w, clock, TrainRound::Stand::kNoRows);
    Tick(train, at);
    const bool paused = told() == "21: pause, 22: pause";
    orders_.sent.resize(orders);  // Answers the commands to train.
    Done(train, kWorkers[0], Trained(clock, 4));
    Done(train, kWorkers[1], Trained(clock, 4));
    now_ = at;
    EXPECT_EQ(AllAnswered(train).what, What::kDone);
    const bool saves = job_.plan->next() == JobStep::kSave;
    EXPECT_EQ(saves, paused);
    if (saves) {
      job_.save_times.Saves(at, job_.plan->full_save());
      job_.plan->Done();
    }
    return saves;
  }
};

TEST_F(TimedSaveTest, ARoundEndsAtAStepWhenASaveIsDueByTheClock) {
  const TimeMs start = now_;
  EXPECT_FALSE(SavesAt(1, start + 4999));
  EXPECT_TRUE(SavesAt(2, start + 5000));
  EXPECT_FALSE(job_.plan->full_save());
  EXPECT_FALSE(SavesAt(3, start + 9999));
  EXPECT_TRUE(SavesAt(4, start + 29'999));
  EXPECT_FALSE(job_.plan->full_save());
  EXPECT_TRUE(SavesAt(5, start + 30'000));
  EXPECT_TRUE(job_.plan->full_save());
  EXPECT_FALSE(SavesAt(6, start + 34'999)) << "a full save is one of changes too";
  EXPECT_TRUE(SavesAt(7, start + 35'000));
  EXPECT_FALSE(job_.plan->full_save());
}

// A step that takes longer than the interval is finished before anything is saved: without a step
// since the newest save, nobody pauses.
TEST_F(TimedSaveTest, NothingIsSavedTwice) {
  EXPECT_TRUE(SavesAt(1, now_ + 5000));
  TrainPhase train(parts_);
  Begin(train);
  told();
  Tick(train, now_ + 60'000);
  EXPECT_EQ(told(), "");
}

Job EvictsByTheClock() {
  Job job = TenSteps();
  job.tables.resize(2);
  job.tables[1].policy.evict_after_seconds = 8;
  return job;
}

class AgingRowsTest : public PhaseTest {
 protected:
  AgingRowsTest() : PhaseTest(EvictsByTheClock()) {
    job_.plan.emplace(*spec_, JobPosition(), JobPlan::Past());
  }
};

// The age of rows is that of training alone: what lies between two rounds counts nothing.
TEST_F(AgingRowsTest, RowsLeaveAtAStepAtWhichAllWorkersStand) {
  Next next;
  for (Clock clock = 1; clock <= 9; ++clock) {
    TrainPhase train(parts_);
    Begin(train);
    const size_t orders = orders_.sent.size();
    told();
    for (uint32_t w : {0, 1}) train.OnProgress(w, clock, TrainRound::Stand::kNoRows);
    const TimeMs begun = now_;
    Tick(train, begun + 999);
    EXPECT_EQ(told(), "");
    Tick(train, begun + 1000);
    EXPECT_EQ(told(), "21: pause, 22: pause");
    orders_.sent.resize(orders);
    for (const PeerId worker : kWorkers) Done(train, worker, Trained(clock, 4));
    next = AllAnswered(train);
    now_ += 5000;
    EXPECT_EQ(next.what, clock < 9 ? What::kDone : What::kEnter) << clock;
  }
  ASSERT_EQ(next.phase, JobPhase::kEvict);
  EvictPhase evict(parts_);
  const size_t before = orders_.sent.size();
  Begin(evict);
  ASSERT_EQ(orders_.sent.size(), before + 2);
  for (size_t server : {0, 1}) {
    const auto& [to, command] = orders_.sent[before + server];
    EXPECT_EQ(to, kServers[server]);
    EXPECT_EQ(command.command, CommandKind::kEvict);
    EXPECT_EQ(command.until, 9);
    EXPECT_EQ(command.last_steps, (std::vector<Clock>{0, 1}));
  }
  EXPECT_EQ(AllAnswered(evict).what, What::kDone);
}

Job TellsFigures() {
  Job job = TenSteps();
  job.train.batch_size = 1;
  job.train.progressive.window = 4;
  return job;
}

class ProgressiveTest : public PhaseTest {
 protected:
  ProgressiveTest() : PhaseTest(TellsFigures()) {
    job_.plan.emplace(*spec_, JobPosition(), JobPlan::Past());
  }
  static CommandDone Scored(Clock clock, const std::vector<float>& scores,
                            const std::vector<float>& labels) {
    CommandDone done = Trained(clock, scores.size());
    done.scores = Buffer::CopyOf(std::span<const float>(scores));
    done.labels = Buffer::CopyOf(std::span<const float>(labels));
    return done;
  }
  double Figure(const char* word) const { return FigureOf(*job_.record.summary.progressive, word); }
};

// The newest answer of each worker has its part of the window.
TEST_F(ProgressiveTest, ItsFiguresAreThoseOfTheNewestAnswersOfAllWorkers) {
  std::string lines;
  report_.TellLines([&](const std::string& line) { lines += line; });
  TrainPhase train(parts_);
  Begin(train);
  EXPECT_EQ(told(), "21: train 4, 22: train 4");
  job_.quiet_wanted = true;
  Tick(train, now_ + 10);
  orders_.sent.resize(2);
  Done(train, kWorkers[0], Scored(2, {9, 9}, {0, 0}));
  Done(train, kWorkers[1], Scored(3, {-1, 2}, {0, 1}));
  EXPECT_EQ(AllAnswered(train).what, What::kWait);
  EXPECT_FALSE(job_.record.summary.progressive) << "the workers are at two clocks";
  Done(train, kWorkers[0], Scored(3, {1, 0}, {1, 0}));
  EXPECT_EQ(AllAnswered(train).what, What::kDone);
  ASSERT_TRUE(job_.record.summary.progressive);
  EXPECT_EQ(job_.record.summary.progressive->examples, 4u);
  EXPECT_EQ(Figure("auc"), 1);
  const auto p = [](double logit) { return 1 / (1 + std::exp(-logit)); };
  EXPECT_NEAR(Figure("calibration"), (p(1) + p(0) + p(-1) + p(2)) / 2, 1e-9);
  EXPECT_NEAR(Figure("logloss"), -std::log(p(1) * (1 - p(0)) * (1 - p(-1)) * p(2)) / 4, 1e-9);
  ASSERT_FALSE(said_.empty());
  EXPECT_EQ(said_.back().substr(0, 41), "step 3, before learning: AUC 1.000000, lo");
  EXPECT_NE(lines.find(R"("eval_set":"progressive","eval_examples":4,"eval_auc":1.0)"),
            std::string::npos)
      << lines;
}

TEST_F(ProgressiveTest, ARoundWithoutAStepTellsNothing) {
  TrainPhase train(parts_);
  Begin(train);
  for (const PeerId worker : kWorkers) Done(train, worker, Trained(0, 0, /*end_of_epoch=*/false));
  job_.quiet_wanted = true;
  AllAnswered(train);
  EXPECT_FALSE(job_.record.summary.progressive);
}

TEST_F(TrainPhaseTest, WhoSeesAnotherEndOfTheEpochIsToBlame) {
  Begin(train_);
  Done(train_, kWorkers[0], Trained(8, 32, /*end_of_epoch=*/true));
  const Next next = Done(train_, kWorkers[1], Trained(6, 24, /*end_of_epoch=*/true));
  EXPECT_EQ(next.what, What::kBlame);
  EXPECT_EQ(next.member, kWorkers[1]);
}

TEST_F(TrainPhaseTest, AnEpochWithoutAStepEndsTheJob) {
  Begin(train_);
  for (const PeerId worker : kWorkers) Done(train_, worker, Trained(0, 0, true));
  const Next next = AllAnswered(train_);
  EXPECT_EQ(next.what, What::kFail);
  EXPECT_EQ(next.exit_status, 2);
}

TEST_F(TrainPhaseTest, AnotherProcessTakesTheRoundOverFromItsOrders) {
  JobRecord::Order order{kWorkers[1], {}};
  order.command.command = CommandKind::kTrain;
  job_.record.orders = {{kWorkers[0], order.command}, order};
  train_.TakeOver(job_, now_);
  EXPECT_EQ(Tick(train_, now_).what, What::kWait);
  EXPECT_EQ(told(), "");  // The workers are training already.
  train_.OnProgress(1, 7, TrainRound::Stand::kSteps);
  EXPECT_EQ(train_.furthest(), 7);
}

TEST_F(TrainPhaseTest, StoreDenseAsksTheFirstWorkerAndTheStepIsDone) {
  Job job = TenSteps();
  job.parallel.dense_exchange = DenseExchange::kAllreduce;
  job_.plan.emplace(job, JobPosition(), JobPlan::Past());
  job_.plan->Trained(10, false);
  ASSERT_EQ(job_.plan->next(), JobStep::kStoreDense);
  StoreDensePhase store(parts_);
  EXPECT_EQ(Begin(store).what, What::kWait);
  EXPECT_EQ(told(), "21: store_dense");
  Done(store, kWorkers[0]);
  EXPECT_EQ(AllAnswered(store).what, What::kDone);
  EXPECT_EQ(job_.plan->next(), JobStep::kDigest);
}

}  // namespace
}  // namespace hdps
