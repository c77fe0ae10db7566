// Tests the phases before training: all members load, or worker 0 sends initial values.
#include "scheduler/phases/load.h"

#include "common/job/job_spec.h"
#include "scheduler/phases/init_dense.h"
#include "tests/scheduler/phases/phase_fixture.h"

namespace hdps {
namespace {

using What = Next::What;

FoundCheckpoint Checkpoint() {
  FoundCheckpoint found;
  found.folder = "out/checkpoint/step_0000000008";
  found.manifest.clock = 8;
  found.manifest.examples = 80;
  found.manifest.epoch_sums = {30, 3.0};
  found.manifest.bad_rows = 2;
  return found;
}

class LoadPhaseTest : public PhaseTest {};

TEST_F(LoadPhaseTest, ServersThenWorkersThenTheJobGoesOnFromTheCheckpoint) {
  job_.record.trained = {5, 5.0};  // Progress that is lost.
  LoadPhase load(parts_, Checkpoint());
  EXPECT_EQ(Begin(load).what, What::kWait);
  EXPECT_EQ(told(), "11: load 8, 12: load 8");
  EXPECT_EQ(job_.loading, 8);
  Done(load, kServers[0]);
  Done(load, kServers[1]);
  const Next workers = AllAnswered(load);
  EXPECT_EQ(workers.what, What::kAgain);
  EXPECT_EQ(workers.phase, JobPhase::kLoadWorkers);
  Begin(load);
  EXPECT_EQ(told(), "21: load 8, 22: load 8");
  Done(load, kWorkers[0]);
  Done(load, kWorkers[1]);
  EXPECT_EQ(AllAnswered(load).what, What::kReady);
  EXPECT_EQ(job_.plan->position().clock, 8);
  EXPECT_EQ(job_.record.trained.examples, 0u);
  EXPECT_EQ(job_.record.examples_before, 80u);
  EXPECT_EQ(job_.record.epoch.examples, 30u);
  EXPECT_EQ(job_.record.summary.bad_rows, 2u);
  EXPECT_EQ(job_.record.summary.resumed_from, 8);
}

TEST_F(LoadPhaseTest, WithoutACheckpointFirstValuesFollow) {
  LoadPhase load(parts_, std::nullopt);
  Begin(load);
  EXPECT_EQ(told(), "11: load, 12: load");
  AllAnswered(load);
  Begin(load);
  Done(load, kWorkers[0]);
  const Next next = AllAnswered(load);
  EXPECT_EQ(next.what, What::kEnter);
  EXPECT_EQ(next.phase, JobPhase::kInitDense);
  EXPECT_FALSE(job_.plan);
}

// Servers take what fits of another job; a checkpoint that they cannot read ends this one.
TEST_F(LoadPhaseTest, ANewJobMayBeginWithRowsOfAnother) {
  job_.record.init = "other/checkpoint/step_0000000020";
  LoadPhase load(parts_, std::nullopt);
  Begin(load);
  ASSERT_EQ(orders_.sent.size(), 2u);
  EXPECT_EQ(orders_.sent[0].command.path, job_.record.init);
  EXPECT_TRUE(orders_.sent[0].command.init);
  EXPECT_EQ(job_.loading, 0);
  Done(load, kServers[0]);
  Done(load, kServers[1]);
  EXPECT_EQ(AllAnswered(load).phase, JobPhase::kLoadWorkers);
  Begin(load);
  EXPECT_EQ(orders_.sent[2].command.path, "") << "workers begin at step 0";
  EXPECT_FALSE(orders_.sent[2].command.init);
  LoadPhase torn(parts_, std::nullopt);
  Begin(torn);
  EXPECT_TRUE(Refuses(torn, kServers[0], Code::kCorruption, "torn"));
  const Next next = AllAnswered(torn);
  EXPECT_EQ(next.what, What::kFail);
  EXPECT_EQ(next.exit_status, 3);
  EXPECT_EQ(next.message,
            "the checkpoint of --init, other/checkpoint/step_0000000020: server 0 (host): torn");
}

// After a loss, steps that a worker reports beyond the known ones count as lost too.
TEST_F(LoadPhaseTest, WhatNobodyHadHeardOfCountsAsLost) {
  job_.loss = Loss{1, 0};
  job_.lost_to = 9;
  LoadPhase load(parts_, Checkpoint());
  Begin(load);
  AllAnswered(load);
  Begin(load);
  CommandDone done;
  done.clock = 12;
  Done(load, kWorkers[0], done);
  Done(load, kWorkers[1]);
  EXPECT_EQ(AllAnswered(load).what, What::kReady);
  EXPECT_EQ(job_.record.summary.steps_again, 3u);
  EXPECT_EQ(job_.record.reached, 12);
}

// A worker that died has told its servers of more steps than its heartbeats. What the servers say
// counts at once, because another loss may end the phase.
TEST_F(LoadPhaseTest, WhatTheServersKnowOfADeadWorkerCountsAsLost) {
  job_.loss = Loss{1, 0};
  job_.lost_to = 9;
  LoadPhase load(parts_, Checkpoint());
  Begin(load);
  CommandDone done;
  done.clock = 24;
  Done(load, kServers[0], done);
  EXPECT_EQ(job_.record.summary.steps_again, 15u);
  done.clock = 23;
  Done(load, kServers[1], done);
  EXPECT_EQ(job_.lost_to, 24);
  EXPECT_EQ(job_.record.reached, 24);
  LoadPhase again(parts_, Checkpoint());
  Begin(again);
  done.clock = 8;  // Where the servers have stood since.
  for (const PeerId server : kServers) Done(again, server, done);
  AllAnswered(again);
  Begin(again);
  done.clock = 25;  // A worker that is left was a step further.
  Done(again, kWorkers[0], done);
  Done(again, kWorkers[1]);
  EXPECT_EQ(AllAnswered(again).what, What::kReady);
  EXPECT_EQ(job_.record.summary.steps_again, 16u);
}

// A server's refusal is the checkpoint's fault, a worker's is its own; without an older checkpoint
// the job ends.
TEST_F(LoadPhaseTest, ACheckpointThatAServerRefusesIsGivenUp) {
  LoadPhase load(parts_, Checkpoint());
  Begin(load);
  EXPECT_FALSE(Refuses(load, kServers[0], Code::kIoError, "disk"));
  EXPECT_TRUE(Refuses(load, kServers[0], Code::kCorruption, "torn"));
  const Next next = AllAnswered(load);
  EXPECT_EQ(next.what, What::kFail);
  EXPECT_EQ(next.exit_status, 3);
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0],
            "refused the checkpoint out/checkpoint/step_0000000008: server 0 (host): torn");
}

TEST_F(LoadPhaseTest, InitDenseAsksTheFirstWorkerAndBeginsAtStepZero) {
  InitDensePhase init(parts_);
  EXPECT_EQ(Begin(init).what, What::kWait);
  EXPECT_EQ(told(), "21: init_dense");
  Done(init, kWorkers[0]);
  EXPECT_EQ(AllAnswered(init).what, What::kReady);
  EXPECT_EQ(job_.plan->position().clock, 0);
  EXPECT_EQ(job_.plan->next(), JobStep::kTrain);
}

}  // namespace
}  // namespace hdps
