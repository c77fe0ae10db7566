// Tests what a scheduler refuses: jobs, folders, members and frames that do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "common/job/job_file.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/precision.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/board_messages.h"
#include "common/protocol/manifest.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "scheduler/members/validate_cluster.h"
#include "tests/scheduler/scheduler_node_fixture.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(SchedulerNodeTest, WhatDoesNotFitIsRefusedBeforeAnythingIsWritten) {
  options_.job.parallel.device_num = 3;
  Status status = Refused(1, 2);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("parallel.device_num is 3"), HasSubstr("--workers=2")));
  options_.job.parallel.device_num = 0;
  EXPECT_THAT(Refused(1, 17).message(), AllOf(HasSubstr("batch_size is 16"), HasSubstr("17")));
  options_.job.parallel.dataset_strategy = DatasetStrategy::kFullBatch;
  EXPECT_TRUE(Refused(1, 17).ok());
  ASSERT_TRUE(files_->RemoveAll("out").ok());
  EXPECT_THAT(Refused(0, 2).message(), HasSubstr("--servers=0"));
  EXPECT_THAT(Refused(5, 2).message(), AllOf(HasSubstr("cluster.shards is 4"), HasSubstr("5")));
  options_.job.parallel.parallel_mode = ParallelMode::kStandAlone;
  EXPECT_THAT(Refused(1, 2).message(), HasSubstr("stand_alone"));
  EXPECT_FALSE(files_->Exists("out"));
}

TEST_F(SchedulerNodeTest, WhatTheNumberOfWorkersMakesWrongIsRefused) {
  options_.job.parallel.interleave_num = 8;  // A step has 16 examples.
  EXPECT_TRUE(Refused(1, 2).ok());
  EXPECT_THAT(Refused(1, 4).message(), AllOf(HasSubstr("parallel.interleave_num is 8"),
                                             HasSubstr("--workers=4"), HasSubstr("4 examples")));
  options_.job.train.micro_batches = 2;
  EXPECT_THAT(Refused(1, 2).message(), HasSubstr("8 examples of a step in 2 parts"));
}

// Under a search layers stay whole where another setting does not go with cut ones.
TEST(ValidateClusterTest, WhatASearchCutsGoesTogetherWithTheRest) {
  const auto fits = [](const std::string& hidden, const std::string& optimizer) {
    const Result<Job> job = ParseJob(
        R"({"data": {"train": ["a"], "format": "libsvm"}, "model": {"layers": [
              {"name": "e", "kind": "embedding", "table": "t"},
              {"name": "h", "inputs": ["e"], "units": )" +
            hidden + R"(}, {"name": "out", "inputs": ["h"], "units": 1}],
              "tables": [{"name": "t", "dim": 1024}]},
            "parallel": {"parallel_mode": "auto_parallel", "dense_exchange": "allreduce",
                         "enable_parallel_optimizer": )" +
            optimizer + R"(}, "train": {"batch_size": 16}})",
        "job.json", {});
    EXPECT_TRUE(job.ok()) << job.status().message();
    return ValidateCluster(*job, 1, 4);
  };
  EXPECT_TRUE(fits("2", "true").ok());
  EXPECT_TRUE(fits("65536", "true").ok());
  EXPECT_THAT(fits("65536", R"(true, "worker_memory_limit": "512MiB")").message(),
              AllOf(HasSubstr("parallel.worker_memory_limit"), HasSubstr("needs least")));
}

TEST_F(SchedulerNodeTest, SettingsThatCountForNothingOnACpuAreWarnedOf) {
  options_.job.model.dense_target = "cuda";
  options_.job.model.precision = Precision::kTf32;
  Start();
  cluster_->answer = [](ScriptedMember& member,
                        const Command& command) -> std::optional<CommandDone> {
    if (member.role != Role::kWorker || command.command != CommandKind::kInitDense) {
      return std::nullopt;
    }
    CommandDone done;
    done.arithmetic = "avx2 vectors";
    return done;
  };
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("warning: model.dense_target = cuda has no effect"));
  EXPECT_TRUE(cluster_->Noticed("warning: model.precision = tf32 has no effect"));
}

TEST_F(SchedulerNodeTest, AnotherJobsCheckpointIsRefused) {
  Start();
  ExpectDone();
  const std::string summary = cluster_->summary();
  options_.resume = Resume::kNever;
  EXPECT_THAT(Refused(1, 2).message(), AllOf(HasSubstr("--resume=never"), HasSubstr("--out")));
  options_.resume = Resume::kAuto;
  options_.job.seed = 99;
  options_.job.name = "other";
  const Status status = Refused(1, 2);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("another job"), HasSubstr("'scripted'"),
                                      HasSubstr("'other'"), HasSubstr("--out")));
  EXPECT_EQ(cluster_->summary(), summary);
  EXPECT_TRUE(FindCheckpoint(*files_, "out/checkpoint").ok());
}

TEST_F(SchedulerNodeTest, WithoutOneWholeCheckpointItDoesNotBeginAnewByItself) {
  Start();
  ExpectDone();
  ASSERT_TRUE(files_->RemoveAll("out/checkpoint/step_0000000020/shard_3").ok());
  const Status status = Refused(1, 2);
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("shard_3"), HasSubstr("use another --out")));
}

// A surplus worker may replace a lost one. If none is lost, starting it was a mistake.
TEST_F(SchedulerNodeTest, ASurplusWorkerIsRefusedWhileTheOthersGoOn) {
  options_.steps_per_epoch = 200;
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker a").clock >= 2; }));
  ScriptedMember& surplus = cluster_->Add(Role::kWorker, "surplus");
  ASSERT_TRUE(cluster_->RunUntil([&] { return surplus.client.ended(); }));
  EXPECT_EQ(surplus.client.exit_status(), 2);
  EXPECT_THAT(surplus.client.reason(), HasSubstr("the job has its 2 workers"));
  ExpectDone();
}

TEST_F(SchedulerNodeTest, AStrangersFramesChangeNothing) {
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 3; }));
  const PeerId stranger{77};
  node().OnFrame(stranger, EncodeMessage(Abort{3, "end"}));
  node().OnFrame(stranger, EncodeMessage(StopRequest{"end"}));
  node().OnFrame(stranger, EncodeMessage(KvPut{"rank/0", "x"}));
  CommandDone done;
  done.id = {1};
  node().OnFrame(stranger, EncodeMessage(done));
  node().OnFrame(stranger, EncodeMessage(PullRequest()));
  Frame broken = EncodeMessage(Heartbeat());
  broken.envelope = Buffer();
  node().OnFrame(cluster_->member("worker a").self, broken);
  ExpectDone();
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"stopped_at\": null"));
}

// A worker reads its data before all members are there.
TEST_F(SchedulerNodeTest, WhoGivesUpBeforeTheClusterIsCompleteIsNamed) {
  options_.with_members = false;
  Start();
  for (const char* name : {"v", "w"}) {
    ScriptedMember& worker = cluster_->Add(Role::kWorker, name);
    for (int turn = 0; turn < 3; ++turn) cluster_->Turn();  // Lets the worker join.
    ASSERT_FALSE(node().done()) << "both workers have to say so";
    node().OnFrame(worker.self, EncodeMessage(Abort{2, "train.csv:1: 'x'"}));
  }
  EXPECT_TRUE(cluster_->Noticed("worker (v) cannot go on: train.csv:1: 'x'; its place is free"));
  ExpectFailed(2);
  EXPECT_EQ(node().exit_reason(), "worker (w): train.csv:1: 'x'");
}

TEST_F(SchedulerNodeTest, MissingMembersAreNamedAndAwaitedOnlySoLong) {
  options_.num_workers = 4;
  options_.with_members = false;
  Start();
  cluster_->Add(Role::kServer, "s");
  for (const int rank : {0, 1, 2}) cluster_->Add(Role::kWorker, "w" + std::to_string(rank), rank);
  ASSERT_TRUE(cluster_->RunUntil([&] { return !cluster_->notices.empty(); }, 11'000));
  EXPECT_TRUE(cluster_->Noticed("waiting for 1 of 4 workers (worker 3); here: server (s)"));
  ExpectFailed(3);
  EXPECT_THAT(node().exit_reason(), AllOf(HasSubstr("after 30 s"), HasSubstr("1 of 4 workers")));
  EXPECT_EQ(cluster_->member("w1").client.exit_status(), 3);
  EXPECT_THAT(cluster_->member("w1").client.reason(), HasSubstr("1 of 4 workers"));
}

}  // namespace
}  // namespace hdps
