// Tests a whole scheduler whose evaluations decide on the end, the checkpoint to keep and the
// rates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <regex>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/manifest.h"
#include "tests/scheduler/scheduler_node_fixture.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Returns scores of one positive and ten negatives, `tenths` of which have a lower score: an AUC of
// `tenths` / 10.
CommandDone WithAuc(int tenths) {
  std::vector<float> scores(11, 0.75f), labels(11, 0);
  scores[10] = 0.5f;
  labels[10] = 1;
  for (int i = 0; i < tenths; ++i) scores[static_cast<size_t>(i)] = 0.25f;
  CommandDone done;
  done.scores = Buffer::CopyOf(std::span<const float>(scores));
  done.labels = Buffer::CopyOf(std::span<const float>(labels));
  done.examples = 11;
  return done;
}

class EarlyStopTest : public SchedulerNodeTest {
 protected:
  EarlyStopTest() {
    options_.job.train.epochs = 9;
    options_.job.train.early_stop.patience = 2;
    options_.job.checkpoint.keep = 1;
    options_.job.checkpoint.keep_best = true;
  }

  // Starts a job whose evaluations have these AUCs, in tenths, by clock: the best is that of step
  // 20.
  void StartScripted() {
    Start();
    cluster_->answer = [this](ScriptedMember& member,
                              const Command& command) -> std::optional<CommandDone> {
      if (command.command != CommandKind::kEvaluate) return std::nullopt;
      if (member.client.rank() != 0) return CommandDone();
      const int tenths = by_clock_.contains(member.clock) ? by_clock_.at(member.clock) : 1;
      CommandDone done = WithAuc(command.eval_set == "late" ? 10 - tenths : tenths);
      done.clock = member.clock;
      return done;
    };
  }

  // Returns the part of the summary that a failure must not change.
  std::string Outcome() const {
    std::string text;
    const std::string summary = cluster_->summary();
    for (const char* key : {"steps", "examples", "stopped_early", "best_step", "best_auc",
                            "best_checkpoint", "checkpoint", "eval_auc"}) {
      std::smatch found;
      const std::regex line("\"" + std::string(key) + "\": [^\n]*");
      EXPECT_TRUE(std::regex_search(summary, found, line)) << key;
      text += found.str() + "\n";
    }
    return text;
  }

  std::map<Clock, int> by_clock_ = {{10, 5}, {20, 8}, {30, 6}, {40, 8}, {50, 9}};
};

TEST_F(EarlyStopTest, TheJobEndsWherePatienceRanOutAndTheBestCheckpointStays) {
  StartScripted();
  ExpectDone();
  EXPECT_THAT(cluster_->transcript(), HasSubstr(R"(server a: save out/checkpoint/step_0000000020
worker a: train, epoch 2 from 20
worker b: train, epoch 2 from 20
)"));
  EXPECT_THAT(cluster_->transcript(), HasSubstr(R"(worker a: train, epoch 3 from 30
worker b: train, epoch 3 from 30
worker a: evaluate
worker b: evaluate
server a: digest
server a: save out/checkpoint/step_0000000040
server a: finish
)"));
  EXPECT_THAT(cluster_->summary(),
              AllOf(HasSubstr("\"steps\": 40"), HasSubstr("\"best_step\": 20"),
                    HasSubstr("\"best_auc\": 0.8"), HasSubstr("\"stopped_at\": null"),
                    HasSubstr("\"best_checkpoint\": \"out/checkpoint/step_0000000020\""),
                    HasSubstr("\"stopped_early\": \"auc was no better than 0.800000, that of step "
                              "20, in 2 evaluations\"")));
  EXPECT_TRUE(cluster_->Noticed("the job ends early: auc was no better than 0.800000"));
  EXPECT_FALSE(files_->Exists("out/checkpoint/step_0000000010")) << "it was the best once";
  EXPECT_EQ(OpenCheckpoint(*files_, "out", WhichCheckpoint::kBest)->manifest.clock, 20);
  EXPECT_EQ(OpenCheckpoint(*files_, "out", WhichCheckpoint::kBest)->newest, 40);
  EXPECT_EQ(OpenCheckpoint(*files_, "out", WhichCheckpoint::kNewest)->manifest.clock, 40);

  StartScripted();  // Started again, it has nothing left to do.
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("already finished: there is nothing left to train, for auc was"));
  EXPECT_THAT(cluster_->transcript(), Not(HasSubstr("train")));

  options_.job.train.early_stop.patience = 4;  // With more patience, the job continues.
  StartScripted();
  ExpectDone();
  EXPECT_THAT(cluster_->summary(), AllOf(HasSubstr("\"steps\": 90"), HasSubstr("\"best_step\": 50"),
                                         HasSubstr("\"resumed_from\": 40")));
}

TEST_F(EarlyStopTest, AnotherProcessOfTheSchedulerEndsItAtTheSameStep) {
  StartScripted();
  ExpectDone();
  const std::string expected = Outcome();
  int turns = 0;
  for (bool ended = false; !ended; ++turns) {
    files_ = NewMemoryFileSystem();
    StartScripted();
    for (int turn = 0; turn < turns && !cluster_->node->done(); ++turn) cluster_->Turn();
    ended = cluster_->node->done();
    if (!ended) cluster_->StartScheduler();
    ExpectDone();
    EXPECT_EQ(Outcome(), expected) << "another process after turn " << turns;
  }
  EXPECT_GT(turns, 50);
}

TEST_F(EarlyStopTest, AfterALossItEndsAtTheSameStep) {
  options_.job.cluster.replace_after_s = 3000;
  StartScripted();
  ExpectDone();
  const std::string expected = Outcome();
  for (Clock at = 1; at < 40; ++at) {
    files_ = NewMemoryFileSystem();
    StartScripted();
    ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= at; }));
    cluster_->member("worker b").cut_off = true;
    cluster_->Add(Role::kWorker, "worker c");
    ExpectDone();
    EXPECT_EQ(Outcome(), expected) << "lost at step " << at;
  }
}

TEST_F(EarlyStopTest, StoppedAndResumedAnywhereItEndsAtTheSameStep) {
  StartScripted();
  ExpectDone();
  const std::string expected = Outcome();
  for (Clock at = 1; at < 40; ++at) {
    files_ = NewMemoryFileSystem();
    StartScripted();
    ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= at; }));
    node().RequestStop("told to");
    ExpectDone();
    StartScripted();
    ExpectDone();
    // The script has the same examples for any part of an epoch.
    const auto without_examples = [](const std::string& text) {
      return std::regex_replace(text, std::regex("\"examples\": [0-9]*"), "");
    };
    EXPECT_EQ(without_examples(Outcome()), without_examples(expected)) << "stopped at step " << at;
  }
}

TEST_F(EarlyStopTest, EverySetIsEvaluatedAndOneOfThemWatched) {
  options_.job.data.eval_sets = {{"late", {"late.csv"}}};
  options_.job.train.early_stop.set = "late";
  StartScripted();
  ExpectDone();
  // It falls where the first set's rises: .5, .2, .4.
  EXPECT_THAT(cluster_->transcript(), HasSubstr(R"(worker a: evaluate
worker b: evaluate
worker a: evaluate late
worker b: evaluate late
server a: save out/checkpoint/step_0000000010
)"));
  EXPECT_THAT(cluster_->summary(), AllOf(HasSubstr("\"steps\": 30"), HasSubstr("\"best_step\": 10"),
                                         HasSubstr("\"eval_auc\": 0.6"),
                                         HasSubstr("\"best_auc\": 0.5"), HasSubstr("\"late\": {")));
  EXPECT_TRUE(cluster_->Noticed("epoch 3, step 30, late: AUC 0.400000"));
  EXPECT_THAT(*ReadWholeFile(*files_, "out/metrics.jsonl", 1u << 20),
              HasSubstr("\"eval_set\":\"late\""));
}

TEST_F(EarlyStopTest, RatesFallOnAPlateauForWhoeverTrainsOn) {
  options_.job.train.early_stop.patience = 0;
  options_.job.train.epochs = 5;
  options_.job.train.plateau.patience = 1;
  options_.job.train.plateau.factor = 0.5;
  StartScripted();
  ExpectDone();
  const auto rates = [this] {
    std::string text;
    std::istringstream lines(cluster_->transcript());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("worker a: train")) text += line.substr(10) + "\n";
    }
    return text;
  };
  // Steps 30 and 40 are no better than step 20.
  EXPECT_EQ(rates(), R"(train, epoch 0 from 0
train, epoch 1 from 10
train, epoch 2 from 20
train, epoch 3 from 30, rate 0.5
train, epoch 4 from 40, rate 0.25
)");
  EXPECT_TRUE(cluster_->Noticed("learning rates are multiplied with 0.5: auc was no better than"));
  EXPECT_THAT(*ReadWholeFile(*files_, "out/metrics.jsonl", 1u << 20),
              AllOf(HasSubstr("\"event\":\"rate_fell\""), HasSubstr("\"rate\":0.25")));
  // Another scheduler process sends the current command again, with its rate.
  for (const Clock at : {33, 42}) {
    files_ = NewMemoryFileSystem();
    StartScripted();
    ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker a").clock >= at; }));
    cluster_->StartScheduler();
    ExpectDone();
    EXPECT_THAT(rates(), HasSubstr("train, epoch 4 from 40, rate 0.25\n"));
  }
}

}  // namespace
}  // namespace hdps
