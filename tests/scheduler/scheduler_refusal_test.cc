// What a scheduler refuses: jobs, folders, members and frames that do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/protocol/manifest.h"
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

// It may be there for one that is lost; when nobody is, it was a mistake.
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

// A worker looks at its data before all members are there.
TEST_F(SchedulerNodeTest, WhoGivesUpBeforeTheClusterIsCompleteIsNamed) {
  options_.with_members = false;
  Start();
  ScriptedMember& worker = cluster_->Add(Role::kWorker, "w");
  for (int turn = 0; turn < 3; ++turn) cluster_->Turn();  // It joins.
  node().OnFrame(worker.self, EncodeMessage(Abort{2, "train.csv:1: 'x'"}));
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
