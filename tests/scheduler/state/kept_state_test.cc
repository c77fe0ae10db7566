// Tests when scheduler.state is written, taken over, and removed.
#include "scheduler/state/kept_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/scheduler/scheduler_node_fixture.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class KeptStateTest : public SchedulerNodeTest {
 protected:
  // Leaves in "out" the state of another scheduler process while all workers train.
  void SetUp() override {
    Start();
    ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 6; }));
    const auto state = ReadSchedulerState(*files_, "out");
    ASSERT_TRUE(state.ok() && *state) << state.status().message();
    left_ = **state;
  }
  KeptState::Run Run() const {
    return {left_.job_digest, left_.num_servers, left_.num_workers, left_.boot};
  }
  bool IsThere(const std::string& out) {
    const auto state = ReadSchedulerState(*files_, out);
    return state.ok() && *state;
  }
  SchedulerState left_;
  std::vector<std::string> lines_;
};

TEST_F(KeptStateTest, WhatAnotherProcessHasLeftOfThisRunIsFoundAndTakenOnce) {
  KeptState kept(*files_, "out", Run());
  ASSERT_TRUE(kept.Find(options_.job).ok());
  ASSERT_TRUE(kept.found());
  const SchedulerState state = kept.TakeFound(/*same_run=*/true, {}, &lines_);
  EXPECT_FALSE(kept.found());
  EXPECT_EQ(state.job.phase, JobPhase::kTrain);
  EXPECT_EQ(state.last_ids, left_.last_ids);
  EXPECT_THAT(lines_, IsEmpty());
}

// Workers of a recorded run are not replaced in place, whichever process of the scheduler decides.
TEST_F(KeptStateTest, WhoRecordsIsKept) {
  const PeerId server = left_.view.servers.front().peer, worker = left_.view.workers.front().peer;
  EXPECT_FALSE(left_.processes.at(server).records);
  left_.processes.at(server).records = true;
  KeptState before(*files_, "out", Run());
  EXPECT_EQ(before.Write(left_, 0), "");
  KeptState kept(*files_, "out", Run());
  ASSERT_TRUE(kept.Find(options_.job).ok());
  const SchedulerState state = kept.TakeFound(/*same_run=*/true, {}, &lines_);
  EXPECT_TRUE(state.processes.at(server).records);
  EXPECT_FALSE(state.processes.at(worker).records);
  Rendezvous rendezvous({.num_shards = 4});
  rendezvous.Restore(state.view, state.processes, 0);
  EXPECT_TRUE(rendezvous.recorded());
}

TEST_F(KeptStateTest, ThatOfAnotherJobOrClusterIsNotUsed) {
  KeptState::Run other_job = Run(), more_servers = Run();
  ++other_job.job_digest;
  ++more_servers.num_servers;
  for (const KeptState::Run& run : {other_job, more_servers}) {
    KeptState kept(*files_, "out", run);
    EXPECT_TRUE(kept.Find(options_.job).ok());
    EXPECT_FALSE(kept.found());
  }
  KeptState none(*files_, "elsewhere", Run());
  EXPECT_TRUE(none.Find(options_.job).ok());
  EXPECT_FALSE(none.found());
}

TEST_F(KeptStateTest, WhatDoesNotFitTheJobIsNotUsedAndSaid) {
  Job job = options_.job;
  job.cluster.shards *= 2;
  KeptState kept(*files_, "out", Run());
  EXPECT_THAT(kept.Find(job).message(), HasSubstr("scheduler.state has 4 shards, the job 8"));
  EXPECT_FALSE(kept.found());
}

TEST_F(KeptStateTest, ANewRunForgetsTheStopOfTheOneBefore) {
  left_.job.stop = true;
  for (const bool same_run : {true, false}) {
    ASSERT_TRUE(WriteSchedulerState(*files_, "out", left_).ok());
    KeptState kept(*files_, "out", Run());
    ASSERT_TRUE(kept.Find(options_.job).ok());
    lines_.clear();
    EXPECT_EQ(kept.TakeFound(same_run, {}, &lines_).job.stop, same_run);
    EXPECT_EQ(lines_.empty(), same_run);
  }
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("was told to stop; this one goes on")));
}

TEST_F(KeptStateTest, AfterACrashOfTheMachineTheJobGoesBackUnderNumbersThatNobodyHasHeard) {
  KeptState::Run run = Run();
  run.boot = "two";
  KeptState kept(*files_, "out", run);
  ASSERT_TRUE(kept.Find(options_.job).ok());
  const SchedulerState state = kept.TakeFound(true, {}, &lines_);
  EXPECT_EQ(state.job.phase, JobPhase::kSuspended);
  ASSERT_FALSE(state.last_ids.empty());
  for (const auto& [member, id] : state.last_ids) {
    EXPECT_EQ(id, left_.last_ids.at(member) + KeptState::kIdsSkipped);
  }
}

TEST_F(KeptStateTest, ItIsDueWhenSomethingHasChanged) {
  KeptState kept(*files_, "out", Run());
  EXPECT_FALSE(kept.due(0));
  kept.ChangedForProcess();
  EXPECT_TRUE(kept.due(0));
  EXPECT_EQ(kept.Write(left_, 0), "");
  EXPECT_FALSE(kept.due(0));
  kept.ChangedForMachine();
  EXPECT_TRUE(kept.due(0));
}

TEST_F(KeptStateTest, AStateThatCannotBeWrittenIsSaidOnceAndTriedAgainEverySecond) {
  KeptState kept(*files_, "late", Run());  // The folder does not exist yet.
  kept.ChangedForProcess();
  EXPECT_THAT(kept.Write(left_, 5000), HasSubstr("its state is not written: "));
  kept.ChangedForProcess();
  EXPECT_FALSE(kept.due(5999));
  ASSERT_TRUE(kept.due(6000));
  EXPECT_EQ(kept.Write(left_, 6000), "");
  EXPECT_FALSE(kept.due(6999));
  ASSERT_TRUE(files_->MakeDirectories("late").ok());
  ASSERT_TRUE(kept.due(7000));
  EXPECT_EQ(kept.Write(left_, 7000), "the scheduler's state is written again");
  EXPECT_FALSE(kept.due(7000));
  EXPECT_TRUE(IsThere("late"));
}

TEST_F(KeptStateTest, AfterTheEndNobodyGoesOnFromHere) {
  KeptState kept(*files_, "out", Run());
  ASSERT_TRUE(IsThere("out"));
  EXPECT_EQ(kept.Forget(), "");
  EXPECT_FALSE(IsThere("out"));
}

// An elected scheduler that is stopped and wakes up may still be writing.
TEST_F(KeptStateTest, AnOlderReignNeverOverwritesTheStateOfANewerOne) {
  ASSERT_TRUE(files_->RemoveAll("out/scheduler.state").ok());
  KeptState::Run run = Run();
  run.reign = 9;
  KeptState old(*files_, "out", run);
  EXPECT_EQ(old.Write(left_, 0), "");
  run.reign = 12;
  KeptState now(*files_, "out", run);
  EXPECT_TRUE(now.CheckReign().ok());
  ASSERT_TRUE(now.Find(options_.job).ok());
  EXPECT_TRUE(now.found());
  SchedulerState newer = left_;
  newer.job.stop = true;
  EXPECT_EQ(now.Write(newer, 0), "");
  EXPECT_FALSE(files_->Exists("out/scheduler.state.9"));
  EXPECT_EQ(old.Write(left_, 1), "");
  EXPECT_THAT(old.CheckReign().message(), HasSubstr("scheduler.state.12 is of reign 12"));
  const auto read = ReadSchedulerState(*files_, "out");
  ASSERT_TRUE(read.ok() && *read);
  EXPECT_EQ((*read)->reign, 12u);
  EXPECT_TRUE((*read)->job.stop);
  EXPECT_EQ(now.Forget(), "");
  EXPECT_FALSE(IsThere("out"));
}

TEST_F(KeptStateTest, ASchedulerThatIsNotElectedRefusesTheStateOfOneThatWas) {
  KeptState::Run run = Run();
  run.reign = 3;
  KeptState elected(*files_, "out", run);
  EXPECT_EQ(elected.Write(left_, 0), "");
  EXPECT_FALSE(files_->Exists("out/scheduler.state"));
  const Status status = KeptState(*files_, "out", Run()).CheckReign();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("start it with --elect"));
  ASSERT_TRUE(WriteFileAtomically(*files_, "out/scheduler.state.old", std::string("x")).ok());
  EXPECT_EQ(elected.Forget(), "");
  EXPECT_TRUE(files_->Exists("out/scheduler.state.old"));  // Not one of these files.
}

}  // namespace
}  // namespace hdps
