// Tests a whole scheduler: the commands of a run as transcripts, failures and the end.
#include "scheduler/scheduler_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/board_messages.h"
#include "common/protocol/manifest.h"
#include "tests/scheduler/scheduler_node_fixture.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(SchedulerNodeTest, ARunFromTheFirstStepToTheLast) {
  Start();
  ExpectDone();
  EXPECT_EQ(cluster_->transcript(), R"(worker a: init
worker a: train, epoch 0 from 0
worker b: train, epoch 0 from 0
worker a: evaluate
worker b: evaluate
worker a: train, epoch 1 from 10
worker b: train, epoch 1 from 10
worker a: evaluate
worker b: evaluate
server a: digest
server a: save out/checkpoint/step_0000000020
server a: finish
worker a: finish
worker b: finish
)");
  const std::string summary = cluster_->summary();
  for (const char* part :
       {R"("job": "scripted")", R"("mode": "sync")", R"("workers": 2)", R"("servers": 1)",
        R"("steps": 20)", R"("examples": 32)", R"("train_logloss": 0.5)",
        R"("digest": "0000000000000005ffffffffffffffff")", R"("rows": 3)", R"("bad_rows": 4)",
        // Two of the four pairs of a positive and a negative, over both workers' parts.
        R"("eval_auc": 0.5)", R"("resumed_from": null)", R"("stopped_at": null)",
        R"("checkpoint": "out/checkpoint/step_0000000020")"}) {
    EXPECT_THAT(summary, HasSubstr(part));
  }
  const Result<FoundCheckpoint> saved = FindCheckpoint(*files_, "out/checkpoint");
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  EXPECT_EQ(saved->manifest.epoch, 2u);
  EXPECT_EQ(saved->manifest.epoch_start, 20);
  EXPECT_EQ(saved->manifest.examples, 32u);
  EXPECT_THAT(*ReadWholeFile(*files_, "out/metrics.jsonl", 1u << 20),
              AllOf(StartsWith("{\"time\":"), HasSubstr("\"eval_auc\":0.5")));
  for (const char* name : {"server a", "worker a", "worker b"}) {
    EXPECT_TRUE(cluster_->RunUntil([&] { return cluster_->member(name).client.ended(); }));
    EXPECT_EQ(cluster_->member(name).client.exit_status(), 0);
  }
}

TEST_F(SchedulerNodeTest, CheckpointsAndAllreduce) {
  options_.job.checkpoint.every_steps = 8;
  options_.job.checkpoint.keep = 1;
  options_.job.parallel.dense_exchange = DenseExchange::kAllreduce;
  options_.job.train.max_steps = 10;
  options_.num_servers = 2;
  options_.num_workers = 1;
  Start();
  ExpectDone();
  EXPECT_EQ(cluster_->transcript(), R"(worker a: init
worker a: train to 8, epoch 0 from 0
worker a: store dense
server a: save out/checkpoint/step_0000000008
server b: save out/checkpoint/step_0000000008
worker a: train to 10, epoch 0 from 0
worker a: store dense
worker a: evaluate
server a: digest
server b: digest
server a: save out/checkpoint/step_0000000010
server b: save out/checkpoint/step_0000000010
server a: finish
server b: finish
worker a: finish
)");
  EXPECT_FALSE(files_->Exists("out/checkpoint/step_0000000008"));
  EXPECT_THAT(cluster_->summary(), HasSubstr("000000000000000bfffffffffffffffe"));
}

TEST_F(SchedulerNodeTest, StoppedItDrainsAndResumes) {
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 13; }));
  // One worker is behind, and has to catch up before a save.
  cluster_->member("worker a").clock = 11;
  node().RequestStop("told to");
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("stopping: told to"));
  const Clock stopped = FindCheckpoint(*files_, "out/checkpoint")->manifest.clock;
  EXPECT_GE(stopped, 13);
  EXPECT_LT(stopped, 20);
  EXPECT_EQ(cluster_->member("worker a").clock, stopped);
  EXPECT_EQ(cluster_->member("worker b").clock, stopped);
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"stopped_at\": " + std::to_string(stopped)));

  options_.num_workers = 1;
  options_.num_servers = 2;
  Start();
  ExpectDone();
  const std::string folder = "out/checkpoint/" + CheckpointName(stopped);
  const std::string at = std::to_string(stopped);
  EXPECT_EQ(cluster_->transcript(), "server a: load " + folder + " at " + at + "\nserver b: load " +
                                        folder + " at " + at + "\nworker a: load " + folder +
                                        " at " + at + R"(
worker a: train, epoch 1 from 10
worker a: evaluate
server a: digest
server b: digest
server a: save out/checkpoint/step_0000000020
server b: save out/checkpoint/step_0000000020
server a: finish
server b: finish
worker a: finish
)");
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"resumed_from\": " + at));
}

TEST_F(SchedulerNodeTest, WarningsOfTheJobAreTold) {
  options_.job.warnings = {"train.staleness_bound is ignored"};
  Start();
  EXPECT_EQ(std::ranges::count(cluster_->notices, "warning: train.staleness_bound is ignored"), 1);
}

TEST_F(SchedulerNodeTest, GradientsThatAreSummedOverSeveralWorkersAreTold) {
  for (const bool mean : {true, false}) {
    for (const uint32_t workers : {1, 3}) {
      options_.job.parallel.gradients_mean = mean;
      options_.num_workers = workers;
      Start();
      EXPECT_EQ(cluster_->Noticed("warning: parallel.gradients_mean is false: the means of 3"),
                !mean && workers == 3);
    }
  }
}

TEST_F(SchedulerNodeTest, LabelsOfOneClassAndAnAucWithoutAValueAreTold) {
  Start();
  cluster_->answer = [](ScriptedMember&, const Command& command) -> std::optional<CommandDone> {
    if (command.command != CommandKind::kEvaluate) return std::nullopt;
    CommandDone done;
    done.id = command.id;
    const std::vector<float> scores = {0.5f, 0.25f}, labels = {0, 0};
    done.scores = Buffer::CopyOf(std::span<const float>(scores));
    done.labels = Buffer::CopyOf(std::span<const float>(labels));
    done.examples = 2;
    done.label_tally = {2, 0, 0, 0};
    return done;
  };
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("epoch 1, step 10: AUC undefined (all 4 labels are 0), logloss"));
  EXPECT_TRUE(cluster_->Noticed("epoch 2, step 20: AUC undefined (all 4 labels are 0), logloss"));
  EXPECT_TRUE(cluster_->Noticed("warning: all 4 evaluation labels are 0"));
  EXPECT_THAT(cluster_->summary(), AllOf(HasSubstr("\"eval_auc\": null"),
                                         HasSubstr("\"eval_auc_undefined\": \"all 4 labels")));
}

// Scores that come from each worker in three pieces are requested and used as one list.
TEST_F(SchedulerNodeTest, ScoresComeInPieces) {
  Start();
  std::map<std::string, int> pieces;
  cluster_->answer = [&](ScriptedMember& member,
                         const Command& command) -> std::optional<CommandDone> {
    if (command.command != CommandKind::kEvaluate) return std::nullopt;
    int& piece = pieces[member.called];
    EXPECT_EQ(command.next, piece % 3 != 0);
    CommandDone done;
    const std::vector<float> scores = {0.75f, 0.25f};
    const std::vector<float> labels = piece % 3 == 2 ? std::vector<float>{0, 1}  //
                                                     : std::vector<float>{1, 0};
    done.scores = Buffer::CopyOf(std::span<const float>(scores));
    done.labels = Buffer::CopyOf(std::span<const float>(labels));
    done.examples = 2;
    done.more = ++piece % 3 != 0;
    return done;
  };
  ExpectDone();
  // There are 6 times 6 pairs: 4 * 4 are won, and 4 * 2 + 2 * 4 are ties.
  EXPECT_TRUE(cluster_->Noticed("epoch 1, step 10: AUC 0.666667, logloss"));
  EXPECT_TRUE(cluster_->Noticed("over 12 examples"));
}

TEST_F(SchedulerNodeTest, ACheckpointOfAnotherKindOfCpuIsSaid) {
  std::string arithmetic = "avx512 vectors";
  const auto answer = [&](ScriptedMember& member, const Command& command) {
    std::optional<CommandDone> done;
    const bool asked = command.command == CommandKind::kInitDense ||
                       command.command == CommandKind::kLoad ||
                       command.command == CommandKind::kEvaluate;
    if (member.role != Role::kWorker || !asked) return done;
    done.emplace();
    done->id = command.id;
    done->arithmetic = arithmetic;
    done->dense_rows = 2;
    if (command.command == CommandKind::kLoad) member.clock = done->clock = command.until;
    return done;
  };
  Start();
  cluster_->answer = answer;
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 13; }));
  node().RequestStop("told to");
  ExpectDone();
  EXPECT_THAT(cluster_->summary(),
              AllOf(HasSubstr("\"rows\": 3,"), HasSubstr("\"dense_rows\": 2")));
  EXPECT_THAT(FindCheckpoint(*files_, "out/checkpoint")->manifest.arithmetic,
              ElementsAre("avx512 vectors"));
  for (const char* now : {"avx512 vectors", "avx2 vectors"}) {
    arithmetic = now;
    Start();
    cluster_->answer = answer;
    ExpectDone();
    EXPECT_EQ(cluster_->Noticed("warning: the checkpoint was trained with avx512 vectors, this run "
                                "computes with avx2 vectors"),
              arithmetic == "avx2 vectors");
    ASSERT_TRUE(files_->RemoveAll("out/checkpoint/" + CheckpointName(20)).ok());
  }
}

TEST_F(SchedulerNodeTest, AFinishedJobIsSaidToBeFinished) {
  Start();
  ExpectDone();
  Start();
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("already finished"));
  EXPECT_THAT(cluster_->transcript(), Not(HasSubstr("train")));
  EXPECT_THAT(cluster_->transcript(), Not(HasSubstr("save")));
  EXPECT_THAT(cluster_->summary(), AllOf(HasSubstr("\"steps\": 20"), HasSubstr("\"eval_auc\": 0.5"),
                                         HasSubstr("\"train_logloss\": 0.5")));
}

TEST_F(SchedulerNodeTest, AMemberMayAskForTheStop) {
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 3; }));
  cluster_->member("server a").client.RequestStop("SIGTERM");
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("server 0 (server a) was told to stop: SIGTERM"));
  EXPECT_TRUE(FindCheckpoint(*files_, "out/checkpoint").ok());
}

TEST_F(SchedulerNodeTest, StoppedWhileGatheringItEndsAtOnce) {
  options_.num_workers = 3;
  options_.with_members = false;
  Start();
  ScriptedMember& worker = cluster_->Add(Role::kWorker, "early");
  cluster_->Turn();
  cluster_->Turn();
  node().RequestStop("told to");
  ExpectDone();
  EXPECT_TRUE(cluster_->RunUntil([&] { return worker.client.ended(); }));
  EXPECT_EQ(worker.client.exit_status(), 0);
}

TEST_F(SchedulerNodeTest, WhileTheSchedulerItselfStoodStillNobodyWasSilent) {
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 3; }));
  cluster_->now += 50'000;
  ExpectDone();
}

TEST_F(SchedulerNodeTest, ARefusedCommandEndsTheJob) {
  Start();
  cluster_->answer = [](ScriptedMember&, const Command& command) -> std::optional<CommandDone> {
    if (command.command != CommandKind::kEvaluate) return std::nullopt;
    CommandDone done;
    done.code = Code::kInvalidArgument;
    done.message = "eval.csv: no such file";
    return done;
  };
  ExpectFailed(2);
  EXPECT_THAT(node().exit_reason(), HasSubstr("eval.csv: no such file"));
}

TEST_F(SchedulerNodeTest, ACheckpointThatAServerRefusesIsPassedOver) {
  options_.job.checkpoint.every_steps = 8;
  options_.job.checkpoint.keep = 3;
  Start();
  ExpectDone();
  Start();
  cluster_->answer = [](ScriptedMember& member,
                        const Command& command) -> std::optional<CommandDone> {
    if (command.command != CommandKind::kLoad || member.role != Role::kServer) return std::nullopt;
    if (command.until != 20) return std::nullopt;
    CommandDone done;
    done.code = Code::kCorruption;
    done.message = "shard_2: checksum";
    return done;
  };
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("refused the checkpoint out/checkpoint/step_0000000020"));
  EXPECT_THAT(cluster_->transcript(),
              StartsWith("server a: load out/checkpoint/step_0000000020 at 20\n"
                         "server a: load out/checkpoint/step_0000000016 at 16\n"
                         "worker a: load out/checkpoint/step_0000000016 at 16\n"));
  EXPECT_THAT(cluster_->summary(),
              AllOf(HasSubstr("shard_2: checksum"), HasSubstr("\"resumed_from\": 16")));
}

TEST_F(SchedulerNodeTest, ASaveThatFailsIsSkippedButNotTheLast) {
  options_.job.checkpoint.retry_s = 5;
  options_.job.checkpoint.every_steps = 8;
  Clock fails_at = 8;
  const auto fail = [&fails_at](ScriptedMember&,
                                const Command& command) -> std::optional<CommandDone> {
    if (command.command != CommandKind::kSave || command.until != fails_at) return std::nullopt;
    CommandDone done;
    done.code = Code::kIoError;
    done.message = "no space left";
    return done;
  };
  Start();
  cluster_->answer = fail;
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("no space left"));
  ASSERT_TRUE(files_->RemoveAll("out").ok());
  fails_at = 20;
  Start();
  cluster_->answer = fail;
  ExpectFailed(3);
  EXPECT_THAT(node().exit_reason(),
              AllOf(HasSubstr("no space left"), HasSubstr("step_0000000016")));
}

TEST_F(SchedulerNodeTest, TheLastSaveIsTriedAgainUntilThereIsRoom) {
  int failures = 3;
  Start();
  cluster_->answer = [&](ScriptedMember&, const Command& command) -> std::optional<CommandDone> {
    if (command.command != CommandKind::kSave || failures-- <= 0) return std::nullopt;
    CommandDone done;
    done.code = Code::kIoError;
    done.message = "no space left";
    return done;
  };
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("no space left"));
  EXPECT_TRUE(cluster_->Noticed("tried again in 4 s"));
  EXPECT_TRUE(files_->Exists("out/checkpoint/step_0000000020/manifest.json"));
}

TEST_F(SchedulerNodeTest, ALongWaitSaysForWhom) {
  Start();
  cluster_->member("server a").mute = true;
  EXPECT_TRUE(cluster_->RunUntil(
      [&] { return cluster_->Noticed("waiting for server 0 (server a) to answer digest for 1"); }));
  cluster_->member("server a").mute = false;
  ExpectDone();
}

TEST_F(SchedulerNodeTest, AWorkerThatStandsStillIsNamed) {
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 3; }));
  cluster_->member("worker b").mute = true;
  EXPECT_TRUE(cluster_->RunUntil(
      [&] { return cluster_->Noticed("worker 1 (worker b) has been at step 3 for"); }));
}

TEST_F(SchedulerNodeTest, TheLastWordOfAMemberMayBeLost) {
  Start();
  cluster_->answer = [](ScriptedMember& member,
                        const Command& command) -> std::optional<CommandDone> {
    member.cut_off = command.command == CommandKind::kFinish && member.role == Role::kServer;
    return std::nullopt;
  };
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("server 0 (server a) has not confirmed the end of the job"));
}

TEST_F(SchedulerNodeTest, TheBoardIsSharedByAll) {
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 1; }));
  MembershipClient& b = cluster_->member("worker b").client;
  b.Get({"rank/0"});
  cluster_->member("worker a").client.Put({"rank/0", "tcp://x"});
  std::vector<KvValue> values;
  ASSERT_TRUE(cluster_->RunUntil([&] { return !(values = b.TakeKvValues()).empty(); }));
  EXPECT_EQ(values[0].value, "tcp://x");
}

}  // namespace
}  // namespace hdps
