// Tests the loss of members, and of the scheduler, in the middle of a job.
#include "scheduler/scheduler_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/board_messages.h"
#include "common/protocol/manifest.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/status_messages.h"
#include "tests/scheduler/scheduler_node_fixture.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(SchedulerNodeTest, ALostWorkerThatNobodyReplacesEndsTheJobByName) {
  options_.job.checkpoint.every_steps = 4;
  options_.job.cluster.replace_after_s = 1;
  options_.num_workers = 1;
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker a").clock >= 6; }));
  cluster_->member("worker a").cut_off = true;
  ExpectFailed(3);
  EXPECT_THAT(node().exit_reason(),
              AllOf(HasSubstr("worker 0 (worker a) lost"),
                    HasSubstr("step 4, checkpoint out/checkpoint/step_0000000004")));
  EXPECT_EQ(cluster_->member("server a").client.exit_status(), 3);
  EXPECT_THAT(cluster_->member("server a").client.reason(), HasSubstr("worker 0"));
}

// Measures the wait for another server, which a later scheduler must still know.
TEST_F(SchedulerNodeTest, HowLongTheJobStoodIsCountedOnByAnotherScheduler) {
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 3; }));
  cluster_->member("server a").cut_off = true;
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->Noticed("is lost"); }));
  ASSERT_FALSE(cluster_->RunUntil([&] { return node().done(); }, 2500));
  cluster_->Add(Role::kServer, "server b");
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->Noticed("the job goes on from"); }));
  cluster_->StartScheduler();
  ExpectDone();
  const std::string summary = cluster_->summary(), name = "\"stood_seconds\": ";
  const size_t at = summary.find(name);
  ASSERT_NE(at, std::string::npos) << summary;
  EXPECT_NEAR(std::stod(summary.substr(at + name.size())), 2.55, 0.05);
}

// Each meeting of the workers puts new keys there, and a long job may see many.
TEST_F(SchedulerNodeTest, TheBoardIsEmptyWhenWorkersMeetAnew) {
  options_.job.cluster.replace_after_s = 3000;
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 2; }));
  MembershipClient& a = cluster_->member("worker a").client;
  const auto found = [&](const std::string& key) {
    a.Get({key});
    std::vector<KvValue> values;
    return cluster_->RunUntil([&] { return !(values = a.TakeKvValues()).empty(); }, 2000);
  };
  a.Put({"allreduce/view_1/0", "here"});
  ASSERT_TRUE(found("allreduce/view_1/0"));
  cluster_->StartScheduler();  // A scheduler that takes over keeps what it finds.
  ASSERT_TRUE(found("allreduce/view_1/0"));
  cluster_->member("worker b").cut_off = true;
  cluster_->Add(Role::kWorker, "worker c");
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->Noticed("was replaced in place"); }));
  EXPECT_FALSE(found("allreduce/view_1/0"));
}

// Only its order is given again, as one that was begun, and it is the one that goes on.
TEST_F(SchedulerNodeTest, AnotherTakesUpTheStepOfALostWorkerAndNobodyGoesBack) {
  options_.job.checkpoint.every_steps = 4;
  options_.job.cluster.replace_after_s = 3000;
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 6; }));
  cluster_->member("worker b").cut_off = true;
  cluster_->Add(Role::kWorker, "worker c");
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->Noticed("was replaced in place"); }));
  // The order of the dead one is no one's now, and its successor's is known to another scheduler.
  cluster_->StartScheduler();
  ExpectDone();
  EXPECT_THAT(cluster_->transcript(),
              HasSubstr("worker c: train to 8, epoch 0 from 0, begun at 4\n"));
  EXPECT_THAT(cluster_->transcript(), Not(HasSubstr(": load")));
  EXPECT_FALSE(cluster_->Noticed("goes on from step"));
  EXPECT_FALSE(cluster_->Noticed("all go back"));
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"failures_survived\": 2"));
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"steps\": 20"));
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"steps_again\": 0"));
}

TEST_F(SchedulerNodeTest, AServerThatIsLostToo) {
  options_.job.checkpoint.every_steps = 4;
  options_.job.cluster.replace_after_s = 3000;
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 6; }));
  cluster_->member("worker b").cut_off = true;
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->Noticed("takes up its step in place"); }));
  cluster_->member("server a").cut_off = true;
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->Noticed("server 0 (server a) is lost"); }));
  cluster_->Add(Role::kServer, "server b");
  cluster_->Add(Role::kWorker, "worker c");
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("because server 0 was lost, and no other server has all"));
  EXPECT_TRUE(cluster_->Noticed("goes on from step 4"));
}

TEST_F(SchedulerNodeTest, AnotherTakesThePlaceOfALostWorkerAndAllGoBackToTheCheckpoint) {
  options_.job.parallel.dense_exchange = DenseExchange::kAllreduce;
  options_.job.train.clip_norm = 1;
  options_.job.checkpoint.every_steps = 4;
  options_.job.cluster.replace_after_s = 3000;
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 6; }));
  cluster_->member("worker b").cut_off = true;
  // It joins before its place is known to be free.
  cluster_->Add(Role::kWorker, "worker c");
  ExpectDone();
  EXPECT_THAT(cluster_->transcript(),
              HasSubstr("server a: load out/checkpoint/step_0000000004 at 4\n"
                        "worker a: load out/checkpoint/step_0000000004 at 4\n"
                        "worker c: load out/checkpoint/step_0000000004 at 4\n"
                        "worker a: train to 8, epoch 0 from 0\n"
                        "worker c: train to 8, epoch 0 from 0\n"));
  EXPECT_TRUE(cluster_->Noticed("worker 1 (worker b) is lost: nothing was heard of it for 1.0 s"));
  EXPECT_TRUE(cluster_->Noticed("because its norm was of sums that others may not have"));
  EXPECT_TRUE(cluster_->Noticed("goes on from step 4"));
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"failures_survived\": 1"));
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"steps\": 20"));
  // The lost worker comes back: it is told, and does no harm.
  cluster_->member("worker b").cut_off = false;
}

// A scheduler that stands still notices no loss, and no patience runs out.
TEST_F(SchedulerNodeTest, WhoStandsByIsNotRefusedBecauseTheSchedulerStoodStill) {
  options_.job.cluster.replace_after_s = 3000;
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 6; }));
  cluster_->member("worker b").cut_off = true;
  const ScriptedMember& newcomer = cluster_->Add(Role::kWorker, "worker c");
  ASSERT_FALSE(cluster_->RunUntil([&] { return newcomer.client.ended(); }, 200));
  cluster_->now += 10'000;
  ExpectDone();
  EXPECT_EQ(newcomer.client.exit_status(), 0) << newcomer.client.reason();
}

TEST_F(SchedulerNodeTest, AReplacementThatComesBeforeTheClusterIsCompleteStandsBy) {
  options_.with_members = false;
  Start();
  cluster_->Add(Role::kWorker, "worker a", 0);
  ScriptedMember& lost = cluster_->Add(Role::kWorker, "worker b", 1);
  ASSERT_FALSE(cluster_->RunUntil([&] { return lost.client.ended(); }, 200));
  lost.cut_off = true;
  const ScriptedMember& newcomer = cluster_->Add(Role::kWorker, "worker c", 1);
  ASSERT_FALSE(cluster_->RunUntil([&] { return newcomer.client.ended(); }, 3000))
      << newcomer.client.reason();
  cluster_->Add(Role::kServer, "server a");
  ExpectDone();
}

TEST_F(SchedulerNodeTest, ALostServerBeforeTheFirstCheckpointBeginsTheJobAnew) {
  options_.job.cluster.replace_after_s = 3000;
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 6; }));
  cluster_->member("server a").cut_off = true;
  cluster_->Add(Role::kServer, "server b");
  ExpectDone();
  EXPECT_THAT(cluster_->transcript(), HasSubstr("server b: load  at 0\n"
                                                "worker a: load  at 0\n"
                                                "worker b: load  at 0\n"
                                                "worker a: init\n"));
}

TEST_F(SchedulerNodeTest, WorkersThatAreLeftGoOnWhereTheJobSaysSo) {
  options_.job.cluster.replace_after_s = 1;
  options_.job.cluster.on_worker_loss = OnWorkerLoss::kShrink;
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker a").clock >= 6; }));
  cluster_->member("worker a").cut_off = true;
  ExpectDone();
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"workers\": 1"));
}

// Training continues meanwhile, and no command is repeated.
TEST_F(SchedulerNodeTest, ASchedulerThatComesBackGoesOnWhereItWas) {
  options_.job.checkpoint.every_steps = 4;
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 6; }));
  cluster_->StartScheduler();
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("the scheduler is back at step 4; the members of view 1 go on"));
  EXPECT_THAT(cluster_->transcript(), HasSubstr("worker b: train to 8, epoch 0 from 0\n"));
  EXPECT_THAT(cluster_->transcript(),
              Not(HasSubstr("worker b: train to 8, epoch 0 from 0\nworker b: train to 8")));
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"steps\": 20"));
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"steps_again\": 0"));
  EXPECT_FALSE(files_->Exists("out/scheduler.state"));
}

// What each kTrain says is where the partitions are at the clock at which it begins.
std::vector<PartitionOffset> OffsetsAt(Clock clock) {
  if (clock == 0) return {};
  return {{0, 1000 + clock}, {1, 2000 + clock}};
}

TEST_F(SchedulerNodeTest, OffsetsOfATopicGoBackAndOnWithTheClockTheyAreOf) {
  options_.job.checkpoint.every_steps = 4;
  options_.job.cluster.replace_after_s = 3000;
  options_.job.train.epochs = 1;
  options_.reads_topic = true;
  Start();
  std::vector<Clock> begun;
  cluster_->answer = [&](ScriptedMember& member, const Command& command) {
    if (command.command == CommandKind::kTrain) {
      EXPECT_EQ(command.offsets, OffsetsAt(member.clock)) << member.called << " " << member.clock;
      begun.push_back(member.clock);
    }
    return std::optional<CommandDone>();
  };
  const auto manifest_at = [&](Clock clock) {
    const Result<Manifest> manifest =
        ReadManifest(*files_, JoinPath("out/checkpoint", CheckpointName(clock)));
    EXPECT_TRUE(manifest.ok()) << manifest.status().message();
    return manifest.ok() ? manifest->offsets : std::vector<PartitionOffset>();
  };
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 6; }));
  EXPECT_EQ(manifest_at(4), OffsetsAt(4));
  cluster_->member("server a").cut_off = true;
  cluster_->Add(Role::kServer, "server b");
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->Noticed("goes on from step 4"); }));
  cluster_->StartScheduler();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 9; }));
  EXPECT_EQ(manifest_at(8), OffsetsAt(8));
  cluster_->StartScheduler();
  ExpectDone();
  EXPECT_EQ(manifest_at(10), OffsetsAt(10));
  EXPECT_THAT(begun, ElementsAre(0, 0, 4, 4, 4, 4, 8, 8));
}

// If the machine was down, the view on disk may be old.
TEST_F(SchedulerNodeTest, ASchedulerWhoseMachineWasDownGoesBackToTheCheckpoint) {
  options_.job.checkpoint.every_steps = 4;
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 6; }));
  cluster_->boot = "two";
  cluster_->StartScheduler();
  ExpectDone();
  EXPECT_THAT(cluster_->transcript(), HasSubstr("load out/checkpoint/step_0000000004 at 4\n"));
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"steps\": 20"));
  EXPECT_THAT(cluster_->summary(), Not(HasSubstr("\"steps_again\": 0")));
}

// Heartbeats may lack the last steps: remaining members report them when they go back.
TEST_F(SchedulerNodeTest, StepsThatNobodyHadHeardOfAreCountedAsTrainedAgain) {
  options_.job.checkpoint.every_steps = 4;
  options_.job.cluster.replace_after_s = 3000;
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 6; }));
  cluster_->answer = [](ScriptedMember& member,
                        const Command& command) -> std::optional<CommandDone> {
    if (command.command != CommandKind::kLoad || member.called != "worker a") {
      return std::nullopt;
    }
    member.clock = command.until;
    CommandDone done;
    done.clock = 104;  // Its progress so far.
    return done;
  };
  cluster_->member("server a").cut_off = true;
  cluster_->Add(Role::kServer, "server b");
  ExpectDone();
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"steps_again\": 100,"));
}

// More workers were requested than join; one that is there is lost and replaced meanwhile. The job
// neither waits for the others nor stands because it was about to change.
TEST_F(SchedulerNodeTest, ALossDoesNotWaitForNewcomers) {
  options_.job.cluster.replace_after_s = 3000;
  options_.steps_per_epoch = 60;
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 6; }));
  ScaleRequest more;
  more.workers = 1;
  node().OnFrame({77}, EncodeMessage(more));
  cluster_->member("worker b").cut_off = true;
  cluster_->Add(Role::kWorker, "worker c");
  ExpectDone();
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"workers\": 2"));
}

// Another process takes over between a manifest and the state that records it: saving again would
// first remove an intact checkpoint.
TEST_F(SchedulerNodeTest, ACheckpointThatIsWholeIsNotSavedAgain) {
  options_.job.checkpoint.every_steps = 4;
  Start();
  const std::string manifest = "out/checkpoint/step_0000000008/manifest.json";
  ASSERT_TRUE(cluster_->RunUntil([&] { return files_->Exists(manifest); }));
  cluster_->StartScheduler();
  ExpectDone();
  const std::string transcript = cluster_->transcript(),
                    save = "server a: save out/checkpoint/step_0000000008";
  EXPECT_EQ(transcript.find(save), transcript.rfind(save)) << transcript;
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"steps\": 20"));
}

TEST_F(SchedulerNodeTest, AStateThatCannotBeReadIsSaidAndNotUsed) {
  ASSERT_TRUE(files_->MakeDirectories("out").ok());
  ASSERT_TRUE(
      WriteFileAtomically(*files_, "out/scheduler.state", std::string("{\"version\": 1")).ok());
  Start();
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("out/scheduler.state"));
}

TEST_F(SchedulerNodeTest, WhatUnfinishedSavesHaveLeftBehindGoes) {
  options_.job.checkpoint.every_steps = 4;
  const auto half = [&](const std::string& name) {
    ASSERT_TRUE(files_->MakeDirectories("out/checkpoint/" + name).ok());
    ASSERT_TRUE((*files_->Create("out/checkpoint/" + name + "/shard_000.snapshot"))->Close().ok());
  };
  half("step_0000000300");
  half("another's");
  Start();
  EXPECT_FALSE(files_->Exists("out/checkpoint/step_0000000300"));
  EXPECT_TRUE(cluster_->Noticed("removed 1 unfinished checkpoint that saves have left behind"));
  // The save was under way when the members continued without their scheduler.
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker a").clock >= 6; }));
  half("step_0000000400");
  ExpectDone();
  EXPECT_FALSE(files_->Exists("out/checkpoint/step_0000000400"));
  EXPECT_TRUE(files_->Exists("out/checkpoint/step_0000000020/manifest.json"));
  EXPECT_TRUE(files_->Exists("out/checkpoint/another's/shard_000.snapshot"));
}

// Shards of server a are to move and cannot, so who would have them is told to drop its copies. It
// is lost before it says that it has.
TEST_F(SchedulerNodeTest, AServerThatIsLostIsNotAwaitedToDropItsCopies) {
  options_.num_servers = 2;
  options_.steps_per_epoch = 100'000;
  options_.job.cluster.balance_after_s = 1;
  options_.job.cluster.replicas = 1;  // Server a goes on with all rows.
  options_.job.cluster.replace_after_s = 3000;
  Start();
  uint64_t busy_ns = 0;
  const auto loads = [&](const char* name, uint32_t first, uint64_t weight) {
    cluster_->member(name).client.ReportLoads([&busy_ns, first, weight] {
      busy_ns += 10'000'000;
      return std::vector<ShardLoad>{{{first}, weight * busy_ns, busy_ns, 1000},
                                    {{first + 1}, weight * busy_ns, busy_ns, 1000}};
    });
  };
  loads("server a", 0, 20);
  loads("server b", 2, 1);
  cluster_->answer = [&](ScriptedMember&, const Command& command) {
    std::optional<CommandDone> done;
    if (command.command == CommandKind::kSaveAhead) {
      done.emplace().code = Code::kIoError;
      done->message = "no space left";
      cluster_->member("server b").mute = true;
    }
    return done;
  };
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->Noticed("no space left"); }));
  cluster_->member("server b").cut_off = true;
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->Noticed("(server b) is lost"); }));
  // The scheduler names each member that has not answered a command for ten seconds.
  EXPECT_FALSE(cluster_->RunUntil([&] { return node().done(); }, 30'000));
}

TEST_F(SchedulerNodeTest, AtTheEndNothingIsLeftOfRowsThatWereOnTheirWay) {
  // Left by a scheduler that died in the middle of a change of members.
  ASSERT_TRUE(files_->MakeDirectories("out/checkpoint/moves_of_view_3").ok());
  ASSERT_TRUE(
      WriteFileAtomically(*files_, "out/checkpoint/moves_of_view_3/shard_0.rows", "rows").ok());
  Start();
  ExpectDone();
  EXPECT_THAT(*files_->List("out/checkpoint"), ElementsAre(CheckpointName(20)));
}

}  // namespace
}  // namespace hdps
