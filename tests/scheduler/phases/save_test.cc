// Tests saves at the workers' common clock: at once, during training, or again if a disk is full.
#include "scheduler/phases/save.h"

#include "common/job/job_spec.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "tests/scheduler/phases/phase_fixture.h"

namespace hdps {
namespace {

using What = Next::What;

class SavePhaseTest : public PhaseTest {
 protected:
  // Ends the job here, so its save is the last.
  void Stop() {
    job_.plan.emplace(*spec_, JobPosition(), JobPlan::Past());
    job_.plan->Stop();
    job_.plan->Trained(6, false);
    job_.plan->Done();  // The digest is done.
    ASSERT_EQ(job_.plan->next(), JobStep::kSave);
  }
  // Returns the files of a server's two shards, in the commanded folder.
  CommandDone Saved(uint32_t first_shard) {
    CommandDone done;
    const std::string folder = orders_.sent.front().command.path;
    for (const uint32_t shard : {first_shard, first_shard + 1}) {
      const std::string name = "shard_" + std::to_string(shard);
      EXPECT_TRUE(WriteFileAtomically(*files_, JoinPath(folder, name), name).ok());
      done.files.push_back(*ChecksumFile(*files_, folder, name));
    }
    return done;
  }
};

TEST_F(SavePhaseTest, TheLastSaveEndsWithACheckpoint) {
  Stop();
  job_.record.trained = {100, 1.0};
  SavePhase save(parts_);
  EXPECT_EQ(Begin(save).what, What::kWait);
  EXPECT_EQ(told(), "11: save 6, 12: save 6");
  EXPECT_FALSE(orders_.sent.front().command.take);
  Done(save, kServers[0], Saved(0));
  Done(save, kServers[1], Saved(2));
  EXPECT_EQ(AllAnswered(save).what, What::kDone);
  ASSERT_TRUE(checkpoints_.newest()) << (said_.empty() ? "" : said_.back());
  EXPECT_EQ(checkpoints_.newest()->manifest.clock, 6);
  EXPECT_EQ(checkpoints_.newest()->manifest.examples, 100u);
  EXPECT_EQ(job_.plan->next(), JobStep::kFinish);
}

TEST_F(SavePhaseTest, AFullDiskIsTriedAgainAtTheEndOfTheRun) {
  Stop();
  SavePhase save(parts_);
  Begin(save);
  EXPECT_TRUE(Refuses(save, kServers[0], Code::kIoError, "no space left"));
  EXPECT_EQ(AllAnswered(save).what, What::kWait);
  EXPECT_EQ(Tick(save, now_ + 999).what, What::kWait);
  EXPECT_EQ(Tick(save, now_ + 1).what, What::kAgain);
  told();
  Begin(save);
  EXPECT_EQ(told(), "11: save 6, 12: save 6");
  now_ += TimeMs{1000} * spec_->checkpoint.retry_s;
  Refuses(save, kServers[0], Code::kIoError, "no space left");
  const Next next = AllAnswered(save);
  EXPECT_EQ(next.what, What::kFail);
  EXPECT_EQ(next.exit_status, 3);
}

Job EverySixSteps() {
  Job job;
  job.name = "saves";
  job.cluster.shards = 4;
  job.checkpoint.every_steps = 6;
  return job;
}

class SaveBesideTraining : public PhaseTest {
 protected:
  SaveBesideTraining() : PhaseTest(EverySixSteps()) {
    job_.plan.emplace(*spec_, JobPosition(), JobPlan::Past());
    job_.plan->Trained(6, false);
  }
};

TEST_F(SaveBesideTraining, TrainingGoesOnWhenRowsAreTaken) {
  ASSERT_EQ(job_.plan->next(), JobStep::kSave);
  SavePhase save(parts_);
  Begin(save);
  EXPECT_EQ(told(), "11: save 6, 12: save 6");
  EXPECT_TRUE(orders_.sent.front().command.take);
  CommandDone taken;
  taken.taken = true;
  Done(save, kServers[0], taken);
  Done(save, kServers[1], taken);
  EXPECT_EQ(AllAnswered(save).what, What::kDone);
  EXPECT_EQ(told(), "11: await_saved 6, 12: await_saved 6");
  EXPECT_TRUE(pending_.under_way());
  EXPECT_EQ(job_.plan->next(), JobStep::kTrain);
  // The next one waits for it.
  job_.plan->Trained(12, false);
  SavePhase next(parts_);
  EXPECT_EQ(Begin(next).what, What::kWait);
  EXPECT_EQ(told(), "");
  pending_.Add({}, "server 0: no space left");
  EXPECT_FALSE(pending_.Complete());
  Begin(next);
  EXPECT_EQ(told(), "11: save 12, 12: save 12");
}

TEST_F(SaveBesideTraining, AFaultIsSaidAndTheJobGoesOn) {
  SavePhase save(parts_);
  Begin(save);
  EXPECT_TRUE(Refuses(save, kServers[1], Code::kIoError, "no space left"));
  EXPECT_EQ(AllAnswered(save).what, What::kDone);
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0],
            "the checkpoint of step 6 could not be saved: server 1 (host): no space left; the "
            "newest whole one is none; training goes on");
  EXPECT_EQ(job_.plan->next(), JobStep::kTrain);
}

}  // namespace
}  // namespace hdps
