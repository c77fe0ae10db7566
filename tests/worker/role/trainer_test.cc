// Tests a trainer alone: commands in, answers out, with emulated servers.
#include "worker/role/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "common/job/spec/table_spec.h"
#include "tests/worker/step/step_fixture.h"

namespace hdps {
namespace {

// Sends the trainer the commands one after the other, each after the answer to the one before, and
// then the end of the job.
class CommandingServers : public RowServers {
 public:
  using RowServers::RowServers;

  void Begin(std::vector<Command> commands) {
    for (Command& command : commands) commands_.push_back(std::move(command));
    Next();
  }
  void Answer(const CommandDone& done) override {
    RowServers::Answer(done);
    if (done.id.value == given_) Next();
  }
  void Fail(Status status) override {
    RowServers::Fail(std::move(status));
    channel().OnEnd(Status(Code::kUnavailable, "a worker has failed"));
  }

 private:
  void Next() {
    if (commands_.empty()) return channel().OnEnd(Status());
    given_ = commands_.front().id.value;
    channel().OnCommand(commands_.front());
    commands_.pop_front();
  }

  std::deque<Command> commands_;
  uint64_t given_ = 0;
};

class TrainerTest : public StepTest {
 protected:
  explicit TrainerTest(std::vector<std::string> overrides = {})
      : StepTest((
            overrides.insert(overrides.end(), {"train.batch_size=10", "data.eval=[\"train.csv\"]"}),
            overrides)) {
    std::string text;
    for (int i = 0; i < 45; ++i) text += std::to_string(i % 2) + "," + std::to_string(i) + ",k\n";
    EXPECT_TRUE(WriteFileAtomically(*files_, "train.csv", text).ok());
  }

  static Command Make(CommandKind kind, Clock until = 0) {
    Command command;
    command.command = kind;
    command.until = until;
    return command;
  }
  // Returns the answers by the number of the command, from 1; `after_step` may be empty.
  std::vector<CommandDone> Run(std::vector<Command> commands, const AfterStep& after_step = {}) {
    for (size_t i = 0; i < commands.size(); ++i) commands[i].id = CommandId{i + 1};
    TrainerOptions options;
    options.job = std::make_shared<const Job>(job_);
    options.after_step = after_step;
    Trainer trainer(options, commander_.channel(), *clock_, *files_, *executor_);
    commander_.Begin(std::move(commands));
    trainer.Run();
    steps_done_ = trainer.times().steps;
    return commander_.answers;
  }

  CommandingServers commander_{2, job_.cluster.shards, *clock_};
  uint64_t steps_done_ = 0;
};

TEST_F(TrainerTest, AJobFromItsFirstWeightsToItsEnd) {
  const std::vector<CommandDone> answers = Run(
      {Make(CommandKind::kLoad), Make(CommandKind::kInitDense), Make(CommandKind::kTrain, 3),
       Make(CommandKind::kTrain, 100), Make(CommandKind::kEvaluate), Make(CommandKind::kFinish)});
  ASSERT_EQ(answers.size(), 6u);
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].id, CommandId{i + 1});
    EXPECT_EQ(answers[i].code, Code::kOk) << answers[i].message;
    EXPECT_EQ(answers[i].dense_rows, dense_keys_.size());
  }
  EXPECT_EQ(answers[0].data_files.size(), 1u);
  for (size_t c = 0; c < dense_keys_.size(); ++c) {
    const uint32_t table = static_cast<uint32_t>(job_.tables.size() - 1);
    EXPECT_FALSE((commander_.rows[{table, dense_keys_[c]}].empty())) << "stored by kInitDense";
  }
  EXPECT_EQ(answers[2].clock, 3);
  EXPECT_EQ(answers[2].examples, 30u);
  EXPECT_FALSE(answers[2].end_of_epoch);
  EXPECT_EQ(answers[3].clock, 5);
  EXPECT_EQ(answers[3].examples, 15u) << "it goes on behind the step of the round before";
  EXPECT_TRUE(answers[3].end_of_epoch);
  EXPECT_EQ(answers[4].examples, 45u);
  EXPECT_EQ(answers[4].clock, 5);
  EXPECT_EQ(steps_done_, 5u);
  EXPECT_TRUE(commander_.failure.ok());
}

TEST_F(TrainerTest, AfterALoadItGoesOnAtTheClockOfTheCheckpoint) {
  Command keep = Make(CommandKind::kLoad, 4);
  keep.keep = true;
  const std::vector<CommandDone> answers =
      Run({Make(CommandKind::kTrain, 3), Make(CommandKind::kLoad, 1), Make(CommandKind::kTrain, 2),
           keep, Make(CommandKind::kTrain, 100)});
  ASSERT_EQ(answers.size(), 5u);
  EXPECT_EQ(answers[1].clock, 3) << "what it had done when the command came";
  EXPECT_EQ(answers[2].clock, 2);
  EXPECT_EQ(answers[2].examples, 10u);
  EXPECT_EQ(answers[4].clock, 5);
  EXPECT_EQ(answers[4].examples, 5u);
  // Heartbeats count from the loaded state, and continue where rows were kept.
  EXPECT_EQ(commander_.reports.back().examples, 15u);
}

TEST_F(TrainerTest, APauseIsAnsweredBehindTheRoundThatItEnds) {
  Command pause = Make(CommandKind::kPause);
  pause.id = CommandId{7};
  const std::vector<CommandDone> answers =
      Run({Make(CommandKind::kTrain, 100)}, [&](const StepReport& report) {
        if (report.clock == 1) commander_.channel().OnCommand(pause);
      });
  ASSERT_GE(answers.size(), 1u);
  EXPECT_EQ(answers[0].clock, 2);
  EXPECT_FALSE(answers[0].end_of_epoch);
}

TEST_F(TrainerTest, ACommandOfAServerIsRefusedAndNothingElseHappens) {
  const std::vector<CommandDone> answers =
      Run({Make(CommandKind::kDigest), Make(CommandKind::kTrain, 1)});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].code, Code::kInvalidArgument);
  EXPECT_EQ(answers[0].message, "a worker cannot digest");
  EXPECT_EQ(answers[1].code, Code::kOk);
}

TEST_F(TrainerTest, WhatGoesWrongIsToldWithCommandAndStep) {
  Command unknown = Make(CommandKind::kEvaluate);
  unknown.eval_set = "tuesday";
  const std::vector<CommandDone> answers = Run({Make(CommandKind::kTrain, 2), unknown});
  EXPECT_EQ(answers.size(), 1u);
  EXPECT_EQ(commander_.failure.code(), Code::kInvalidArgument);
  EXPECT_EQ(commander_.failure.message(),
            "command 'evaluate' at step 2: this job has no evaluation set 'tuesday'");
}

TEST_F(TrainerTest, AnEvaluationGoesOnOnlyWhereOneWasBegun) {
  Command next = Make(CommandKind::kEvaluate);
  next.next = true;
  Run({next});
  EXPECT_EQ(commander_.failure.message(),
            "command 'evaluate' at step 0: there is no evaluation to go on with");
}

// The scheduler sends workers that have paused on to a step that others have begun, as far as their
// reports say: it must have the report before this worker waits for the others.
TEST_F(TrainerTest, WhoTakesUpAStepReportsAtOnceWhereItsPlaceStands) {
  commander_.stand = {.clock = 2, .pushed = 3, .reached = 4};
  commander_.stand.counts.examples = 30;
  Command begun = Make(CommandKind::kTrain, 5);
  begun.begun = true;
  const std::vector<CommandDone> answers = Run({begun});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].clock, 5);
  EXPECT_EQ(answers[0].examples, 45u) << "with those of the process before";
  ASSERT_GE(commander_.reports.size(), 2u);
  EXPECT_EQ(commander_.reports[0].clock, 2);
  EXPECT_EQ(commander_.reports[1].clock, 3);
  const std::vector<std::string> log = commander_.log();
  ASSERT_GE(log.size(), 3u);
  EXPECT_THAT(std::vector(log.begin(), log.begin() + 3),
              testing::ElementsAre("ask 0", "advance 3", "pull 3"));
}

class AllreduceTrainerTest : public TrainerTest {
 protected:
  AllreduceTrainerTest()
      : TrainerTest({"parallel.dense_exchange=allreduce", "parallel.collective=gloo"}) {}
};

// A group of one worker needs no others; its dense rows go back to the servers at kStoreDense.
TEST_F(AllreduceTrainerTest, DenseRowsAreKeptFromTheFirstRoundToTheStore) {
  const std::vector<CommandDone> answers =
      Run({Make(CommandKind::kInitDense), Make(CommandKind::kStoreDense),
           Make(CommandKind::kTrain, 2), Make(CommandKind::kStoreDense),
           Make(CommandKind::kLoad, 2), Make(CommandKind::kStoreDense)});
  ASSERT_EQ(answers.size(), 6u);
  EXPECT_GT(answers[2].collectives.state_bytes, 0u);
  std::vector<std::string> stores;
  for (const std::string& request : commander_.log()) {
    if (request.starts_with("store")) stores.push_back(request);
  }
  EXPECT_THAT(stores, testing::ElementsAre("store 0", "store 2"))
      << "before the first round and behind a load there is nothing of its own to store";
  EXPECT_EQ(commander_.stored.size(), dense_keys_.size());
}

}  // namespace
}  // namespace hdps
