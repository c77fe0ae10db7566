// Tests rows that change their server, where something else comes between: another scheduler, a
// checkpoint that is being written, or other members.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/protocol/manifest.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/status_messages.h"
#include "scheduler/scheduler_state.h"
#include "tests/scheduler/scheduler_node_fixture.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SchedulerMovesTest : public SchedulerNodeTest {
 protected:
  using MaybeDone = std::optional<CommandDone>;

  SchedulerMovesTest() { options_.steps_per_epoch = 100; }
  void StartAndReach(Clock clock) {
    Start();
    ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= clock; }));
  }
  void Scale(int32_t servers, int32_t workers) {
    ScaleRequest request;
    request.servers = servers;
    request.workers = workers;
    node().OnFrame({77}, EncodeMessage(request));
  }
  JobPhase PhaseOnDisk() {
    const auto state = ReadSchedulerState(*files_, "out");
    EXPECT_TRUE(state.ok()) << state.status().message();
    return state.ok() && *state ? (*state)->job.phase : JobPhase::kOver;
  }
  // Lets a server tell that it has so much to do with each of its `shards`.
  void Loads(const std::string& server, const std::vector<uint32_t>& shards, uint64_t weight) {
    cluster_->member(server).client.ReportLoads([this, shards, weight] {
      busy_ns_ += 10'000'000;
      std::vector<ShardLoad> loads;
      for (const uint32_t shard : shards) {
        loads.push_back({{shard}, weight * busy_ns_, busy_ns_, 1000});
      }
      return loads;
    });
  }
  static CommandDone Copied() {
    CommandDone done;
    done.clock = 5;
    done.files = {{.name = "shard_000.snapshot", .bytes = 10, .rows = 1}};
    return done;
  }
  // Another scheduler takes over while the answer to a command of a change of members is lost.
  void DieBeforeTheAnswerTo(CommandKind kind, JobPhase phase) {
    StartAndReach(13);
    ScriptedMember* asked = nullptr;
    cluster_->answer = [&](ScriptedMember& member, const Command& command) {
      if (command.command == kind) asked = &member, member.cut_off = true;
      return MaybeDone();
    };
    Scale(1, 0);
    cluster_->Add(Role::kServer, "server b");
    ASSERT_TRUE(cluster_->RunUntil([&] { return asked != nullptr; })) << cluster_->transcript();
    ASSERT_EQ(PhaseOnDisk(), phase);
    cluster_->answer = {};
    cluster_->StartScheduler();
    asked->cut_off = false;
    ExpectDone();
    EXPECT_THAT(cluster_->transcript(), Not(HasSubstr(": load")));
    EXPECT_THAT(cluster_->summary(),
                AllOf(HasSubstr("\"steps_again\": 0"), HasSubstr("\"failures_survived\": 1")));
  }

  uint64_t busy_ns_ = 0;
};

TEST_F(SchedulerMovesTest, ASchedulerThatDiesWhileRowsAreSavedForAMoveLosesNoStep) {
  DieBeforeTheAnswerTo(CommandKind::kSave, JobPhase::kMoveSave);
}

TEST_F(SchedulerMovesTest, ASchedulerThatDiesWhileDenseLayersAreStoredForAMoveLosesNoStep) {
  options_.job.parallel.dense_exchange = DenseExchange::kAllreduce;
  DieBeforeTheAnswerTo(CommandKind::kStoreDense, JobPhase::kMoveDense);
}

// The job stands until a checkpoint is written, and then the members would change.
TEST_F(SchedulerMovesTest, ASchedulerThatDiesWhileTheJobIsQuietLosesNoStep) {
  options_.job.checkpoint.every_steps = 40;
  Start();
  ScriptedMember& server = cluster_->member("server a");
  cluster_->answer = [&](ScriptedMember& member, const Command& command) {
    MaybeDone done;
    if (command.command == CommandKind::kSave) done.emplace().taken = member.mute = true;
    return done;
  };
  ASSERT_TRUE(cluster_->RunUntil([&] { return server.mute; }));
  Scale(0, 1);
  cluster_->Add(Role::kWorker, "worker c");
  ASSERT_TRUE(cluster_->RunUntil([&] { return PhaseOnDisk() == JobPhase::kQuiet; }));
  cluster_->answer = {};
  cluster_->StartScheduler();
  server.mute = false;
  ExpectDone();
  EXPECT_THAT(cluster_->summary(),
              AllOf(HasSubstr("\"steps_again\": 0"), HasSubstr("\"workers\": 3")));
}

// Server b receives a shard, and is told to drop it, because it is to leave. It goes before it has
// said that it has dropped it.
TEST_F(SchedulerMovesTest, AServerThatHasLeftIsNotAwaitedToDropItsCopies) {
  options_.num_servers = 2;
  options_.steps_per_epoch = 100'000;
  options_.job.cluster.balance_after_s = 1;
  Start();
  Loads("server a", {0, 1}, 20);
  Loads("server b", {2, 3}, 1);
  bool dropped = false;
  cluster_->answer = [&](ScriptedMember& member, const Command& command) {
    if (command.command == CommandKind::kLoadAhead && command.shards.empty()) {
      dropped = member.cut_off = true;  // Its answer is lost.
    }
    return command.command == CommandKind::kSaveAhead ? MaybeDone(Copied()) : MaybeDone();
  };
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->Noticed("shards move, by which"); }));
  cluster_->member("server a").mute = true;  // The rows stay under way.
  Scale(-1, 0);
  ASSERT_TRUE(cluster_->RunUntil([&] { return dropped; }));
  cluster_->member("server b").cut_off = cluster_->member("server a").mute = false;
  ASSERT_TRUE(cluster_->RunUntil([&] {
    return cluster_->Noticed("the job goes on with 1 server");
  })) << cluster_->transcript();
  // The scheduler names each member that has not answered a command for ten seconds.
  EXPECT_FALSE(cluster_->RunUntil([&] { return node().done(); }, 30'000));
  EXPECT_FALSE(cluster_->Noticed("to answer load_ahead"));
}

// Rows have come ahead while server c still writes a checkpoint.
TEST_F(SchedulerMovesTest, TheJobDoesNotStandForAMoveWhileACheckpointIsWritten) {
  options_.num_servers = 3;
  options_.steps_per_epoch = 100'000;
  options_.job.cluster.balance_after_s = 1;
  options_.job.checkpoint.every_steps = 200;
  Start();
  Loads("server a", {0, 1}, 20);
  Loads("server b", {2}, 0);
  Loads("server c", {3}, 16);
  bool planned = false;
  Clock saved_at = 0;
  std::vector<SavedFile> written;
  cluster_->answer = [&](ScriptedMember& member, const Command& command) {
    MaybeDone done;
    if (command.command == CommandKind::kSaveAhead) return MaybeDone(Copied());
    if (member.called != "server c") return done;
    if (command.command == CommandKind::kSave && planned && saved_at == 0) {
      saved_at = command.until;
      done.emplace().taken = member.mute = true;
      EXPECT_TRUE(WriteFileAtomically(*files_, JoinPath(command.path, "shard_3"), "rows").ok());
      written = {*ChecksumFile(*files_, command.path, "shard_3")};
    } else if (command.command == CommandKind::kAwaitSaved) {
      done.emplace().files = written;
    }
    return done;
  };
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->Noticed("shards move, by which"); }));
  planned = true;
  cluster_->member("server a").mute = true;  // The rows are not ready before the checkpoint.
  ASSERT_TRUE(cluster_->RunUntil([&] { return saved_at > 0; }));
  cluster_->member("server a").mute = false;
  const auto trained = [&] { return cluster_->member("worker b").clock >= saved_at + 150; };
  ASSERT_TRUE(cluster_->RunUntil(trained, 10'000)) << cluster_->transcript();
  EXPECT_FALSE(cluster_->Noticed("come to another server"));
  cluster_->member("server c").mute = false;
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->Noticed("come to another server"); }))
      << cluster_->transcript();
}

}  // namespace
}  // namespace hdps
