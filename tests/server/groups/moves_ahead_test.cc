// Tests rows that move to another server while they are still changed: nothing is lost, and what is
// sent while requests rest is only what has changed.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/platform/executor.h"
#include "common/platform/random.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/manifest.h"
#include "embedding/row_copy.h"
#include "gtest/gtest.h"
#include "server/shard_set.h"
#include "tests/server/server_harness.h"

namespace hdps {
namespace {

constexpr const char* kFolder = "/out/checkpoint/moves_of_view_4_ahead";
constexpr const char* kMoves = "/out/checkpoint/moves_of_view_4";

// Rows of one table that are admitted by a sketch and evicted again, and of one that stay.
Job MovedJob(Mode mode) {
  Job job = TestJob(mode);
  job.tables = {TableOf("wide", 1, OptimizerKind::kFtrl),
                TableOf("deep", 4, OptimizerKind::kAdagrad)};
  for (TableSpec& table : job.tables) table.init = {InitKind::kUniform, 0.1f};
  job.tables[1].policy.evict_after_steps = 3;
  job.tables[1].policy.admit_after = 2;
  return job;
}

// Server 0, from which shards 0 and 2 of 8 move to server 1.
class MovesAhead : public testing::TestWithParam<Mode> {
 protected:
  MovesAhead() {
    EXPECT_TRUE(files_->MakeDirectories(kFolder).ok());  // As the scheduler does.
    source_ = NewServer(0);
    target_ = NewServer(1);
  }
  std::unique_ptr<ServerHarness> NewServer(uint32_t rank, ServerSabotage sabotage = {}) {
    return std::make_unique<ServerHarness>(ServerSetting{.job = MovedJob(GetParam()),
                                                         .workers = 2,
                                                         .servers = 2,
                                                         .rank = rank,
                                                         .sabotage = sabotage},
                                           files_.get());
  }
  // In async worker 1 is behind worker 0 until the end.
  void Train(Clock from, Clock until, uint64_t keys = 400) {
    for (ServerHarness* server : {source_.get(), target_.get()}) {
      for (const uint32_t worker : {0u, 1u}) {
        for (Clock clock = from; clock < until; ++clock) {
          Random random(static_cast<uint64_t>(clock * 2 + worker));
          std::vector<TableRows> rows = {{0, 1, {}, {}}, {1, 4, {}, {}}};
          for (TableRows& table : rows) {
            std::set<Key> drawn;
            for (int i = 0; i < 60; ++i) drawn.insert(MixBits(random.Below(keys)));
            table.keys.assign(drawn.begin(), drawn.end());
            for (size_t i = 0; i < table.keys.size() * table.row_floats; ++i) {
              table.floats.push_back(static_cast<float>(random.Normal()));
            }
          }
          server->Push(worker, static_cast<uint64_t>(clock), clock, 4, rows);
          if (GetParam() != Mode::kSync) server->Advance(worker, clock + 1);
        }
      }
      if (GetParam() != Mode::kSync) continue;
      for (const uint32_t worker : {0u, 1u}) server->Advance(worker, until);
    }
  }
  static CommandDone Tell(ServerHarness& server, const Command& command) {
    const CommandId id = server.Send(command);
    for (int tick = 0; tick < 50; ++tick) {
      if (std::optional<CommandDone> done = server.TakeAnswer(id)) return *std::move(done);
      server.Tick();
    }
    ADD_FAILURE() << "not answered";
    return {};
  }
  Command Moving(CommandKind kind) const {
    Command command;
    command.command = kind;
    command.path = kFolder;
    command.shards = {{0}, {2}};
    return command;
  }
  // One round: a copy since the last one, which the target reads.
  CommandDone Round() {
    Command save = Moving(CommandKind::kSaveAhead);
    save.since = since_;
    const CommandDone saved = Tell(*source_, save);
    EXPECT_EQ(saved.code, Code::kOk) << saved.message;
    Command load = Moving(CommandKind::kLoadAhead);
    load.since = since_;
    load.until = saved.clock;
    load.files = saved.files;
    if (!saved.files.empty()) {
      const CommandDone loaded = Tell(*target_, load);
      EXPECT_EQ(loaded.code, Code::kOk) << loaded.message;
    }
    since_ = saved.clock;
    return saved;
  }
  // Saves what is left, enters the view and loads. Returns the save's answer.
  CommandDone Move(Clock clock) {
    Command save = Moving(CommandKind::kSave);
    save.path = kMoves;
    save.until = clock;
    save.since = since_;
    const CommandDone saved = Tell(*source_, save);
    EXPECT_EQ(saved.code, Code::kOk) << saved.message;
    for (ServerHarness* server : {source_.get(), target_.get()}) {
      View& view = server->view();
      view.shards.owner[0] = view.shards.owner[2] = {1};
      view.view = view.placed = {4};
      server->SendView();
      Command load;
      load.command = CommandKind::kLoad;
      load.keep = true;
      load.until = clock;
      if (server == target_.get()) {
        load.path = kMoves;
        load.shards = {{0}, {2}};
        load.files = saved.files;
      }
      loaded_ = Tell(*server, load);
    }
    return saved;
  }
  uint64_t Digest() { return source_->Digest() + target_->Digest(); }
  static size_t Changes(const CommandDone& done) {
    return static_cast<size_t>(std::ranges::count_if(done.files, HoldsChanges));
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  std::unique_ptr<ServerHarness> source_, target_;
  Clock since_ = 0;
  CommandDone loaded_;  // Answer of the target.
};
INSTANTIATE_TEST_SUITE_P(Modes, MovesAhead, testing::Values(Mode::kSync, Mode::kAsync, Mode::kSsp));

TEST_P(MovesAhead, RowsAreThoseOfTheServerThatHadThem) {
  Train(0, 10);
  EXPECT_EQ(Changes(Round()), 0u);
  Train(10, 14, 40);
  EXPECT_EQ(Changes(Round()), 2u);
  Train(14, 20, 40);
  const uint64_t before = Digest();
  const CommandDone saved = Move(20);
  EXPECT_EQ(loaded_.code, Code::kOk) << loaded_.message;
  EXPECT_EQ(Changes(saved), 2u);
  EXPECT_EQ(Digest(), before);
  EXPECT_GT(target_->Run(CommandKind::kDigest).counts.evicted, 0u);
}

TEST_P(MovesAhead, WithoutStepsBetweenTheyMoveTooAndAJobThatStandsSendsAll) {
  Train(0, 10);
  Round();
  EXPECT_TRUE(Round().files.empty());
  const uint64_t before = Digest();
  EXPECT_EQ(Changes(Move(10)), 0u);
  EXPECT_EQ(Digest(), before);
}

TEST_P(MovesAhead, ChangesThatAreNotSentAreNoticed) {
  ServerSabotage sabotage;
  sabotage.ahead_changes_left = true;
  target_ = NewServer(1, sabotage);
  Train(0, 10);
  Round();
  Train(10, 14);
  const uint64_t before = Digest();
  Move(14);
  EXPECT_NE(Digest(), before);
}

TEST_P(MovesAhead, ChangesOfRowsThatNeverCameAreRefused) {
  Train(0, 10);
  Round();
  Train(10, 14);
  Command drop = Moving(CommandKind::kLoadAhead);
  drop.path.clear();
  drop.shards.clear();
  EXPECT_EQ(Tell(*target_, drop).code, Code::kOk);
  Move(14);
  EXPECT_EQ(loaded_.code, Code::kCorruption);
}

TEST_P(MovesAhead, ALossBetweenGivesThemUp) {
  Train(0, 10);
  Round();
  target_->view().view = {5};  // Shards stay where they are.
  target_->SendView();
  Train(10, 12);
  Command save = Moving(CommandKind::kSaveAhead);
  save.since = since_;
  Command load = Moving(CommandKind::kLoadAhead);
  const CommandDone saved = Tell(*source_, save);
  load.since = since_;
  load.until = saved.clock;
  load.files = saved.files;
  EXPECT_EQ(Tell(*target_, load).code, Code::kNotFound);
}

TEST_P(MovesAhead, ADropThatWaitsBehindThemIsAnsweredThoughTheyAreGivenUp) {
  LaterExecutor later;
  target_ = std::make_unique<ServerHarness>(
      ServerSetting{.job = MovedJob(GetParam()), .workers = 2, .servers = 2, .rank = 1},
      files_.get(), &later);
  Train(0, 10);
  const CommandDone saved = Tell(*source_, Moving(CommandKind::kSaveAhead));
  Command load = Moving(CommandKind::kLoadAhead);
  load.until = saved.clock;
  load.files = saved.files;
  const CommandId loading = target_->Send(load);
  Command drop;
  drop.command = CommandKind::kLoadAhead;
  const CommandId dropping = target_->Send(drop);
  target_->Tick();
  EXPECT_FALSE(target_->TakeAnswer(dropping));
  target_->view().view = {5};  // Shards stay where they are.
  target_->SendView();
  target_->Tick();
  const std::optional<CommandDone> done = target_->TakeAnswer(dropping);
  later.RunAll();
  target_->Tick();
  EXPECT_FALSE(target_->TakeAnswer(loading));
  target_.reset();  // Before its executor.
  ASSERT_TRUE(done);
  EXPECT_EQ(done->code, Code::kOk) << done->message;
}

// Balance compares these sizes with the limit of a copy.
TEST(ShardSizes, AreThoseOfTheCopiesWhereTheseAreLarger) {
  constexpr uint32_t kDim = 256;
  constexpr size_t kRows = 20'000;
  Job job = TestJob(Mode::kSync);
  job.tables[1] = TableOf("deep", kDim, OptimizerKind::kSgd);
  job.tables[1].weights = WeightFormat::kFp16;
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  ShardSet shards(job, *executor, {{0}, {1}});
  std::vector<Key> keys(kRows);
  std::iota(keys.begin(), keys.end(), Key{1});
  Shard& shard = *shards.Find({1});
  shard.table(1).Store(keys, kDim, std::vector<float>(kRows * kDim, 1), 1);
  const size_t told = shards.BytesOfShards().at(1);
  EXPECT_GT(told, shard.bytes());
  CopyBudget less(shard.bytes()), enough(told);
  const auto refused = shard.TakeMoved(1, 0, &less), copied = shard.TakeMoved(1, 0, &enough);
  ASSERT_TRUE(refused.ok() && copied.ok());
  EXPECT_FALSE(refused->has_value());
  EXPECT_TRUE(copied->has_value());
}

TEST_P(MovesAhead, OnlyFoldersOfARunAndShardsThatAreHere) {
  Train(0, 4);
  Command save = Moving(CommandKind::kSaveAhead);
  save.path = "/etc";
  EXPECT_EQ(Tell(*source_, save).code, Code::kInvalidArgument);
  save.path = kFolder;
  save.shards = {{1}};
  EXPECT_EQ(Tell(*source_, save).code, Code::kNotFound);
  save.shards = {{0}};
  EXPECT_EQ(Tell(*source_, save).code, Code::kOk);
  const std::unique_ptr<ServerHarness> fresh = NewServer(0);
  EXPECT_EQ(Tell(*fresh, save).code, Code::kUnavailable);
}

}  // namespace
}  // namespace hdps
