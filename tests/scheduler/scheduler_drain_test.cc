// Tests members that are lost while a job drains, and what the next start knows of a stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "common/job/spec/cluster_spec.h"
#include "common/protocol/manifest.h"
#include "tests/scheduler/scheduler_node_fixture.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

class SchedulerDrainTest : public SchedulerNodeTest {
 protected:
  SchedulerDrainTest() {
    options_.job.cluster.replace_after_s = 3000;
    options_.steps_per_epoch = 100;
  }
  void StartAndReach(Clock clock) {
    Start();
    ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= clock; }));
  }
  // Returns the clock when the remaining members had heard of the loss.
  Clock Reached() {
    return std::max(cluster_->member("worker a").clock, cluster_->member("worker b").clock);
  }
  Clock Saved() { return FindCheckpoint(*files_, "out/checkpoint")->manifest.clock; }
  // Kills all members, and starts a new run with others.
  void ReplaceAll() {
    for (const char* name : {"server a", "worker a", "worker b"}) {
      cluster_->member(name).cut_off = true;
    }
    cluster_->Add(Role::kServer, "server c", 0);
    cluster_->Add(Role::kWorker, "worker c", 0);
    cluster_->Add(Role::kWorker, "worker d", 1);
  }
};

TEST_F(SchedulerDrainTest, WhatWasReachedIsTrainedAgainAndSaved) {
  StartAndReach(13);
  node().RequestStop("told to");
  cluster_->member("worker b").cut_off = true;
  cluster_->Add(Role::kWorker, "worker c", 1);
  ExpectDone();
  EXPECT_GE(Saved(), 13) << "there is no checkpoint before it";
  EXPECT_LT(Saved(), 30);
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"stopped_at\": " + std::to_string(Saved())));
}

TEST_F(SchedulerDrainTest, AStopWhileTheJobStandsWaitsForWhoIsLost) {
  StartAndReach(13);
  cluster_->member("server a").cut_off = true;
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->Noticed("server 0 (server a) is lost"); }));
  node().RequestStop("told to");
  EXPECT_TRUE(
      cluster_->Noticed("stopping: told to; when server 0 (server a) lost has been replaced"));
  const Clock reached = Reached();
  cluster_->Add(Role::kServer, "server c", 0);
  ExpectDone();
  EXPECT_GE(Saved(), reached - 1);
  EXPECT_LT(Saved(), reached + 20);
}

TEST_F(SchedulerDrainTest, WhoIsToldToStopWhileTheStepsAreTrainedAgainSavesThemFirst) {
  options_.steps_per_epoch = 1000;
  StartAndReach(50);
  cluster_->member("server a").cut_off = true;
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->Noticed("server 0 (server a) is lost"); }));
  const Clock reached = Reached();
  cluster_->Add(Role::kServer, "server c", 0);
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock == 20; }));
  node().RequestStop("told to");
  ExpectDone();
  EXPECT_GE(Saved(), reached - 1);
  EXPECT_LT(Saved(), reached + 20);
}

TEST_F(SchedulerDrainTest, AnotherProcessOfTheSchedulerGoesOnWithTheDrain) {
  StartAndReach(13);
  node().RequestStop("told to");
  cluster_->Turn();
  ASSERT_FALSE(node().done());
  cluster_->StartScheduler();
  ExpectDone();
  EXPECT_GE(Saved(), 13);
  EXPECT_LT(Saved(), 30);
}

// Also in a round that began long before: the state has its workers' progress.
TEST_F(SchedulerDrainTest, WithAllOthersGoneItStillSavesWhatWasReached) {
  StartAndReach(13);
  node().RequestStop("told to");
  cluster_->Turn();
  cluster_->StartScheduler();
  ReplaceAll();
  ExpectDone();
  EXPECT_GE(Saved(), 13) << "there is no checkpoint before it";
  EXPECT_LT(Saved(), 30);
}

TEST_F(SchedulerDrainTest, ASecondLossOnTheWayLosesNothingEither) {
  StartAndReach(40);
  node().RequestStop("told to");
  cluster_->member("server a").cut_off = true;
  cluster_->Add(Role::kServer, "server c", 0);
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock == 10; }));
  cluster_->member("server c").cut_off = true;
  cluster_->Add(Role::kServer, "server d", 0);
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock < 10; }));
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock == 10; }));
  cluster_->StartScheduler();
  ExpectDone();
  EXPECT_GE(Saved(), 40);
  EXPECT_LT(Saved(), 60);
  EXPECT_TRUE(cluster_->Noticed("the job is to stop: it trains to step 4"));
}

TEST_F(SchedulerDrainTest, AnotherRunForgetsIt) {
  StartAndReach(13);
  node().RequestStop("told to");
  cluster_->Turn();
  ASSERT_FALSE(node().done());
  cluster_->StartScheduler(/*same_run=*/false);
  ReplaceAll();
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("the run before this one was told to stop; this one goes on"));
  EXPECT_EQ(Saved(), 200) << "all steps of two epochs";
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"stopped_at\": null"));
}

// At each phase of the drain, up to the last.
TEST_F(SchedulerDrainTest, AnotherRunForgetsItHoweverFarTheDrainWas) {
  for (int turns = 1; turns < 200; ++turns) {
    files_ = NewMemoryFileSystem();
    StartAndReach(13);
    node().RequestStop("told to");
    for (int i = 0; i < turns; ++i) cluster_->Turn();
    if (node().done()) {
      EXPECT_GT(turns, 4);
      return;
    }
    cluster_->StartScheduler(/*same_run=*/false);
    ReplaceAll();
    ExpectDone();
    EXPECT_EQ(Saved(), 200) << "the scheduler was lost " << turns << " turns behind the stop";
  }
  FAIL() << "the drain has no end";
}

// The remaining members were paused, and continue.
TEST_F(SchedulerDrainTest, AnotherRunThatFindsTheMembersAlsoForgetsIt) {
  StartAndReach(13);
  node().RequestStop("told to");
  cluster_->Turn();
  cluster_->StartScheduler(/*same_run=*/false);
  ExpectDone();
  EXPECT_EQ(Saved(), 200);
}

TEST_F(SchedulerDrainTest, ItsOwnStopIsNotForgotten) {
  StartAndReach(13);
  node().RequestStop("told to");
  cluster_->Turn();
  cluster_->StartScheduler(/*same_run=*/false);
  ReplaceAll();
  node().RequestStop("told again");
  ExpectDone();
  EXPECT_LT(Saved(), 30);
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"stopped_at\": "));
}

}  // namespace
}  // namespace hdps
