// Tests checkpoints whose rows the servers have copied, and that are written while training
// continues.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/manifest.h"
#include "common/protocol/view.h"
#include "tests/scheduler/scheduler_node_fixture.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PendingSaves : public SchedulerNodeTest {
 protected:
  PendingSaves() {
    options_.job.data.eval.clear();
    options_.job.train.epochs = 1;
    options_.job.checkpoint.every_steps = 8;
    options_.job.checkpoint.keep = 9;
    options_.num_servers = 1;
    options_.num_workers = 1;
    options_.steps_per_epoch = 40;
  }
  // Lets servers copy rows if they may, and write them when they are asked for the files.
  void StartTaking() {
    Start();
    cluster_->answer = [this](ScriptedMember& member,
                              const Command& command) -> std::optional<CommandDone> {
      if (command.command == CommandKind::kSave && command.take) {
        CommandDone done;
        done.taken = true;
        folder_ = command.path;
        member.mute = mute_;
        if (command.until == stops_at_) node().RequestStop("told to");
        return done;
      }
      if (command.command != CommandKind::kAwaitSaved) return std::nullopt;
      CommandDone done;
      if (fails_at_ == command.until) {
        done.code = Code::kIoError;
        done.message = "no space left";
        return done;
      }
      for (const ShardId shard : member.client.view()->shards.ShardsOf({0})) {
        const std::string name = "shard_" + std::to_string(shard.value);
        EXPECT_TRUE(WriteFileAtomically(*files_, JoinPath(folder_, name), name).ok());
        done.files.push_back(*ChecksumFile(*files_, folder_, name));
      }
      return done;
    };
  }
  static std::string ManifestOf(Clock clock) {
    return JoinPath("out/checkpoint/" + CheckpointName(clock), kManifestName);
  }

  std::string folder_;
  Clock fails_at_ = 0, stops_at_ = 0;
  bool mute_ = false;  // Nothing is written until it is reset.
};

TEST_F(PendingSaves, BecomeCheckpointsWhenTheFilesAreThere) {
  StartTaking();
  ExpectDone();
  EXPECT_THAT(cluster_->transcript(), HasSubstr("await saved 8\n"));
  EXPECT_THAT(cluster_->transcript(), HasSubstr("await saved 32\n"));
  // No training follows the last save, so its checkpoint is written at once.
  EXPECT_THAT(cluster_->transcript(), Not(HasSubstr("await saved 40")));
  EXPECT_EQ(FindCheckpoint(*files_, "out/checkpoint")->manifest.clock, 40);
  EXPECT_EQ(FindCheckpoint(*files_, "out/checkpoint", 40)->manifest.clock, 32);
}

TEST_F(PendingSaves, TrainingGoesOnWhileAServerWritesAndTheNextSaveWaits) {
  StartTaking();
  mute_ = true;
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker a").clock == 16; }));
  for (int turns = 0; turns < 50; ++turns) cluster_->Turn();
  EXPECT_EQ(cluster_->member("worker a").clock, 16);
  EXPECT_THAT(cluster_->transcript(), Not(HasSubstr("save out/checkpoint/step_0000000016")));
  EXPECT_FALSE(files_->Exists(ManifestOf(8)));
  mute_ = false;
  cluster_->member("server a").mute = false;
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("saved out/checkpoint/step_0000000008"));
  EXPECT_TRUE(cluster_->Noticed("saved out/checkpoint/step_0000000016"));
}

TEST_F(PendingSaves, OneThatFailsIsSaidAndTrainingGoesOn) {
  StartTaking();
  fails_at_ = 16;
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("the checkpoint of step 16 could not be saved: server 0"));
  EXPECT_TRUE(cluster_->Noticed("no space left"));
  EXPECT_FALSE(files_->Exists("out/checkpoint/" + CheckpointName(16)));
  EXPECT_EQ(FindCheckpoint(*files_, "out/checkpoint", 32)->manifest.clock, 24);
}

TEST_F(PendingSaves, AStopAtItsStepWaitsForItAndSavesNothingTwice) {
  StartTaking();
  mute_ = true;
  stops_at_ = 16;
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker a").clock == 16; }));
  mute_ = false;
  cluster_->member("server a").mute = false;
  ExpectDone();
  const std::string transcript = cluster_->transcript(),
                    save = "save out/checkpoint/step_0000000016";
  EXPECT_NE(transcript.find(save), std::string::npos);
  EXPECT_EQ(transcript.find(save), transcript.rfind(save)) << transcript;
  EXPECT_EQ(FindCheckpoint(*files_, "out/checkpoint")->manifest.clock, 16);
}

}  // namespace
}  // namespace hdps
