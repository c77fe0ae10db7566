// Tests one command to train: where it ends, what it counts, and what it reports.
#include "worker/role/training_round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "common/job/spec/table_spec.h"
#include "tests/worker/step/step_fixture.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;

class TrainingRoundTest : public StepTest {
 protected:
  TrainingRoundTest() : TrainingRoundTest({"train.batch_size=10"}, 45) {}
  TrainingRoundTest(const std::vector<std::string>& sets, int rows)
      : StepTest(sets), runner_(job_, *model_, servers_.channel(), *clock_, *executor_) {
    Write(rows);
    const Status opened = steps_.Open(job_, {}, {.dense_keys = dense_keys_});
    EXPECT_TRUE(opened.ok()) << opened.message();
  }
  void Write(int rows) {
    std::string text;
    for (int i = 0; i < rows; ++i) text += std::to_string(i % 2) + "," + std::to_string(i) + ",k\n";
    EXPECT_TRUE(WriteFileAtomically(*files_, "train.csv", text).ok());
  }
  // Runs a round until `until`, from the clock of the previous one. `taken_up`: of a process that
  // goes on for a lost one.
  Result<RoundOutcome> Train(Clock until, const PlaceStand& taken_up = {}) {
    Command train;
    train.command = CommandKind::kTrain;
    train.until = until;
    train.epoch = epoch_;
    train.epoch_start = epoch_start_;
    TrainingRound round(servers_.channel(), *clock_, steps_, runner_, /*cache=*/nullptr,
                        after_step_, log_);
    return round.Run(train, &clock_of_steps_, &pause_, taken_up);
  }
  void Pause() {
    Command pause;
    pause.id = CommandId{9};
    pause.command = CommandKind::kPause;
    servers_.channel().OnCommand(pause);
  }

  EpochSteps steps_{job_, *files_, servers_.channel(), *clock_, *executor_};
  StepRunner runner_;
  TrainingLog log_;
  AfterStep after_step_;
  Clock clock_of_steps_ = 0;
  std::optional<Command> pause_;
  uint32_t epoch_ = 0;
  Clock epoch_start_ = 0;
};

class FollowedRoundTest : public TrainingRoundTest {
 protected:
  FollowedRoundTest()
      : TrainingRoundTest({"train.batch_size=10", "data.follow=true", "data.shuffle_rows=0"}, 0) {}
};

TEST_F(TrainingRoundTest, EndsAtItsClockAndTheNextGoesOnBehindIt) {
  const Result<RoundOutcome> first = Train(2);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(clock_of_steps_, 2);
  EXPECT_EQ(first->examples, 20u);
  EXPECT_FALSE(first->end_of_epoch);
  EXPECT_EQ(first->labels.count, 20u);
  const Result<RoundOutcome> second = Train(100);
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(clock_of_steps_, 5);
  EXPECT_EQ(second->examples, 25u);
  EXPECT_TRUE(second->end_of_epoch);
}

TEST_F(TrainingRoundTest, HeartbeatsSumOverRoundsUntilAnotherStateBegins) {
  std::vector<Clock> steps;
  after_step_ = [&steps](const StepReport& report) { steps.push_back(report.clock); };
  const Result<RoundOutcome> first = Train(2), second = Train(3);
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_EQ(servers_.reports.size(), 3u);
  EXPECT_EQ(servers_.reports[2].clock, 3);
  EXPECT_EQ(servers_.reports[2].examples, 30u);
  EXPECT_DOUBLE_EQ(servers_.reports[2].loss_sum, first->loss_sum + second->loss_sum);
  EXPECT_GT(servers_.reports[2].epoch_progress, 0);
  EXPECT_THAT(steps, ElementsAre(1, 2, 3));
  log_.BeginState();
  ASSERT_TRUE(Train(4).ok());
  EXPECT_EQ(servers_.reports[3].examples, 10u);
}

// Steps are counted in their epoch, as MindSpore's LossMonitor prints them; their turn is that of
// the job.
TEST_F(TrainingRoundTest, TheLossOfEveryFewStepsIsPrinted) {
  std::vector<std::string> lines;
  log_.PrintLosses(2, [&lines](const std::string& line) { lines.push_back(line); });
  epoch_ = 6;
  epoch_start_ = -1;
  ASSERT_TRUE(Train(3).ok());
  ASSERT_TRUE(Train(100).ok());
  std::vector<std::string> expected;
  for (const size_t step : {2u, 4u}) {
    char line[100];
    std::snprintf(line, sizeof(line), "epoch: 7 step: %zu, loss is %.8g", step + 1,
                  (servers_.reports[step - 1].loss_sum - servers_.reports[step - 2].loss_sum) / 10);
    expected.emplace_back(line);
  }
  EXPECT_EQ(lines, expected);
  log_.PrintLosses(0, [&lines](const std::string& line) { lines.push_back(line); });
  EXPECT_EQ(lines.size(), 2u);
}

TEST_F(TrainingRoundTest, APauseEndsItBehindTheStepAtHandAndComesOut) {
  after_step_ = [this](const StepReport& report) {
    if (report.clock == 2) Pause();
  };
  const Result<RoundOutcome> round = Train(100);
  ASSERT_TRUE(round.ok()) << round.status().message();
  EXPECT_EQ(clock_of_steps_, 3) << "it came behind step 2 and was seen before step 3";
  ASSERT_TRUE(pause_.has_value());
  EXPECT_EQ(pause_->id, CommandId{9});
  EXPECT_FALSE(round->end_of_epoch);
}

// A save behind a step that some servers have, and others not, would hold a part of it.
TEST_F(TrainingRoundTest, APauseWaitsForTheStepsThatSomeServersHave) {
  Pause();
  PlaceStand taken_up;
  taken_up.reached = 3;
  const Result<RoundOutcome> round = Train(100, taken_up);
  ASSERT_TRUE(round.ok()) << round.status().message();
  EXPECT_EQ(clock_of_steps_, 3);
  EXPECT_EQ(round->steps_again, 3u);
  EXPECT_TRUE(pause_.has_value());
}

// The log that is followed has no row yet: without the wait the pause would come before the step.
TEST_F(FollowedRoundTest, APauseWaitsForRowsOfAStepThatSomeServersHave) {
  PlaceStand taken_up;
  taken_up.reached = 1;
  Pause();
  std::thread writer([this] { Write(20); });
  const Result<RoundOutcome> round = Train(4, taken_up);
  writer.join();
  ASSERT_TRUE(round.ok()) << round.status().message();
  EXPECT_EQ(clock_of_steps_, 1);
  EXPECT_EQ(round->steps_again, 1u);
}

TEST_F(TrainingRoundTest, AStepThatFailsIsNotCounted) {
  ASSERT_TRUE(Train(1).ok());
  for (const Key key : dense_keys_) {
    servers_.rows[{static_cast<uint32_t>(job_.tables.size() - 1), key}].assign(
        job_.tables.back().dim, std::numeric_limits<float>::quiet_NaN());
  }
  steps_.window().CancelRequests();
  const Result<RoundOutcome> round = Train(100);
  ASSERT_FALSE(round.ok());
  EXPECT_EQ(round.status().code(), Code::kCorruption);
  EXPECT_EQ(clock_of_steps_, 1);
  EXPECT_EQ(servers_.reports.size(), 1u);
}

TEST(TrainingLogTest, TimesOfAllRoundsAreAddedUp) {
  TrainingLog log;
  StepTimes times;
  times.steps = 3;
  times.total_ns = 5;
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  const std::unique_ptr<DenseOps> ops = NewCpuOps(*executor);
  log.EndRound(0, 3, times, *ops, nullptr);
  log.EndRound(0, 6, times, *ops, nullptr);
  EXPECT_EQ(log.times().steps, 6u);
  EXPECT_EQ(log.times().total_ns, 10);
}

TEST(TrainingLogTest, TheTallyIsOfTheCallsByKind) {
  CollectiveCounts counts;
  counts.kinds[static_cast<size_t>(CollectiveKind::kAllReduce)] = {2, 80};
  counts.kinds[static_cast<size_t>(CollectiveKind::kReduceScatter)] = {3, 90};
  counts.kinds[static_cast<size_t>(CollectiveKind::kAllGather)] = {4, 100};
  const CollectiveTally tally = TallyOf(counts, 7);
  EXPECT_EQ(tally.allreduce_calls, 2u);
  EXPECT_EQ(tally.allreduce_bytes, 80u);
  EXPECT_EQ(tally.reduce_scatter_calls, 3u);
  EXPECT_EQ(tally.reduce_scatter_bytes, 90u);
  EXPECT_EQ(tally.allgather_calls, 4u);
  EXPECT_EQ(tally.allgather_bytes, 100u);
  EXPECT_EQ(tally.state_bytes, 7u);
}

}  // namespace
}  // namespace hdps
