// Tests delta checkpoints at the scheduler: which saves it requests, which chain it continues from,
// which checkpoints it keeps.
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

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DeltaCheckpoints : public SchedulerNodeTest {
 protected:
  DeltaCheckpoints() {
    options_.job.data.eval.clear();
    options_.job.train.epochs = 1;
    options_.num_servers = 1;
    options_.num_workers = 1;
    options_.steps_per_epoch = 40;
  }
  // Returns all saves in order: "8", or "12 since 8".
  std::string Saves() const {
    std::string saves, text = cluster_->transcript();
    const std::string mark = "save out/checkpoint/step_";
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
      at += mark.size();
      const std::string line = text.substr(at, text.find('\n', at) - at);
      saves += (saves.empty() ? "" : ", ") + line.substr(line.find_first_not_of('0'));
    }
    return saves;
  }
  std::vector<std::string> Folders() { return *files_->List("out/checkpoint"); }
};

TEST_F(DeltaCheckpoints, TheLastOfARunIsFullAlsoWhereChangesWereSaved) {
  options_.job.checkpoint.delta_every_steps = 4;
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return Saves() == "4, 8 since 4"; }));
  node().RequestStop("told to");
  ExpectDone();
  EXPECT_EQ(Saves(), "4, 8 since 4, 8");
  EXPECT_FALSE(FindCheckpoint(*files_, "out/checkpoint")->manifest.is_delta());
}

TEST_F(DeltaCheckpoints, BuildOnTheOneBeforeAndAFullOneEndsTheChain) {
  options_.job.checkpoint.every_steps = 16;
  options_.job.checkpoint.delta_every_steps = 4;
  options_.job.checkpoint.keep = 1;
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker a").clock >= 30; }));
  const FoundCheckpoint found = *FindCheckpoint(*files_, "out/checkpoint");
  std::vector<Clock> clocks;
  for (const CheckpointPart& part : found.chain) clocks.push_back(part.manifest.clock);
  EXPECT_THAT(clocks, ElementsAre(16, 20, 24, 28));
  ExpectDone();
  // The first has no base, and the last is always full.
  EXPECT_EQ(Saves(),
            "4, 8 since 4, 12 since 8, 16, 20 since 16, 24 since 20, 28 since 24, 32, 36 since 32, "
            "40");
  EXPECT_THAT(Folders(), ElementsAre("step_0000000040"));
}

TEST_F(DeltaCheckpoints, AfterSixteenAFullOneIsDue) {
  options_.job.checkpoint.delta_every_steps = 2;
  Start();
  ExpectDone();
  EXPECT_THAT(Saves(), HasSubstr("32 since 30, 34 since 32, 36, 38 since 36, 40"));
  EXPECT_THAT(Folders(), ElementsAre("step_0000000036", "step_0000000038", "step_0000000040"));
}

TEST_F(DeltaCheckpoints, WhenTheyAreHalfAsLongAFullOneIsDue) {
  options_.job.checkpoint.delta_every_steps = 4;
  Start();
  cluster_->answer = [this](ScriptedMember& member,
                            const Command& command) -> std::optional<CommandDone> {
    if (command.command != CommandKind::kSave) return std::nullopt;
    const bool all = command.since == 0;
    CommandDone done;
    for (const ShardId shard : member.client.view()->shards.ShardsOf({0})) {
      const std::string name = "shard_" + std::to_string(shard.value) + (all ? "" : kDeltaEnding);
      // Both deltas together exceed half of the full one's 12 MiB.
      const std::string text((all ? 3072 : 800) << 10, 'd');
      EXPECT_TRUE(WriteFileAtomically(*files_, JoinPath(command.path, name), text).ok());
      done.files.push_back(*ChecksumFile(*files_, command.path, name));
    }
    return done;
  };
  ExpectDone();
  EXPECT_EQ(Saves(),
            "4, 8 since 4, 12 since 8, 16, 20 since 16, 24 since 20, 28, 32 since 28, "
            "36 since 32, 40");
}

TEST_F(DeltaCheckpoints, AServerThatKnowsNoChangesSavesEverything) {
  options_.job.checkpoint.delta_every_steps = 4;
  options_.num_servers = 2;
  Start();
  cluster_->answer = [this](ScriptedMember& member,
                            const Command& command) -> std::optional<CommandDone> {
    const bool all = command.until == 12 || (command.until == 20 && member.called == "server b");
    if (command.command != CommandKind::kSave || !all) return std::nullopt;
    CommandDone done;
    for (const ShardId shard : member.client.view()->shards.ShardsOf({member.client.rank()})) {
      const std::string name = "shard_" + std::to_string(shard.value);
      EXPECT_TRUE(WriteFileAtomically(*files_, JoinPath(command.path, name), "all").ok());
      done.files.push_back(*ChecksumFile(*files_, command.path, name));
    }
    return done;
  };
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker a").clock >= 23; }));
  // Both servers at 12: a full one. One of them at 20: changes, and all rows of some shards.
  const FoundCheckpoint found = *FindCheckpoint(*files_, "out/checkpoint");
  ASSERT_EQ(found.chain.size(), 3u);
  EXPECT_EQ(found.chain[0].manifest.clock, 12);
  EXPECT_EQ(found.manifest.base_clock, 16);
  ExpectDone();
}

TEST_F(DeltaCheckpoints, AFailedOneIsNotBuiltOn) {
  options_.job.checkpoint.delta_every_steps = 4;
  Start();
  cluster_->answer = [](ScriptedMember&, const Command& command) -> std::optional<CommandDone> {
    if (command.command != CommandKind::kSave || command.until != 12) return std::nullopt;
    CommandDone done;
    done.code = Code::kIoError;
    done.message = "no space left";
    return done;
  };
  ExpectDone();
  EXPECT_THAT(Saves(), HasSubstr("4, 8 since 4, 12 since 8, 16 since 8, 20 since 16"));
}

// Stops in the middle of a chain and damages each of its files in turn: the damaged one is
// reported, and the job continues from the last point before it.
TEST_F(DeltaCheckpoints, GoesOnFromTheLastGoodPoint) {
  options_.job.checkpoint.delta_every_steps = 4;
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker a").clock >= 18; }));
  cluster_.reset();  // Ends the cluster as a kill would.
  for (const Clock damaged : {16, 12, 8}) {
    const std::string path = "out/checkpoint/" + CheckpointName(damaged) + "/shard_1.delta";
    ASSERT_TRUE(files_->Exists(path));
    ASSERT_TRUE(WriteFileAtomically(*files_, path, std::string("rrrrrRrrrr")).ok());
    // No members are left to continue with.
    ASSERT_TRUE(files_->RemoveAll("out/scheduler.state").ok());
    Start();
    ASSERT_TRUE(cluster_->RunUntil([&] { return !Saves().empty(); }));
    const std::string good = std::to_string(damaged - 4);
    EXPECT_THAT(cluster_->transcript(),
                HasSubstr("load out/checkpoint/" + CheckpointName(damaged - 4) + " at " + good));
    const std::string next = std::to_string(damaged) + " since " + good;
    EXPECT_EQ(Saves().substr(0, next.size()), next);
    EXPECT_TRUE(cluster_->Noticed(path)) << path;
    cluster_.reset();
  }
}

}  // namespace
}  // namespace hdps
