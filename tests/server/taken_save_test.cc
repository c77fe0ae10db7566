// Tests saves that are copied first, and written while requests continue on the rows.
#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/platform/random.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/manifest.h"
#include "common/protocol/row_messages.h"
#include "common/telemetry/samples.h"
#include "gtest/gtest.h"
#include "tests/server/server_harness.h"

namespace hdps {
namespace {

class TakenSaves : public testing::Test {
 protected:
  TakenSaves() {
    job_.tables = {TableOf("wide", 1, OptimizerKind::kFtrl),
                   TableOf("deep", 4, OptimizerKind::kAdagrad)};
    job_.checkpoint.delta_every_steps = 4;
    server_ = NewServer(&executor_);
    EXPECT_TRUE(files_->MakeDirectories(Folder(4)).ok());
    EXPECT_TRUE(files_->MakeDirectories(Folder(8)).ok());
  }
  // A server ends after its writes.
  void TearDown() override { executor_.RunAll(); }
  std::unique_ptr<ServerHarness> NewServer(Executor* executor = nullptr) {
    return std::make_unique<ServerHarness>(ServerSetting{.job = job_, .workers = 1}, files_.get(),
                                           executor);
  }
  static std::string Folder(Clock clock) { return "/out/checkpoint/" + CheckpointName(clock); }
  void Train(Clock from, Clock until) {
    for (Clock clock = from; clock < until; ++clock) {
      Random random(static_cast<uint64_t>(clock));
      std::vector<TableRows> rows = {{0, 1, {}, {}}, {1, 4, {}, {}}};
      for (TableRows& table : rows) {
        for (Key i = 0; i < 40; ++i) table.keys.push_back(MixBits(clock % 8 * 20 + i));
        for (size_t i = 0; i < table.keys.size() * table.row_floats; ++i) {
          table.floats.push_back(static_cast<float>(random.Normal()));
        }
      }
      server_->Push(0, static_cast<uint64_t>(clock), clock, 4, rows);
      server_->Advance(0, clock + 1);
    }
  }
  uint64_t DigestNow() {
    Command digest;
    digest.command = CommandKind::kDigest;
    const CommandId id = server_->Send(digest);
    executor_.RunAll();
    server_->Tick();
    return server_->TakeAnswer(id)->digest[0];
  }
  CommandId Ask(CommandKind kind, Clock clock, Clock since = 0) {
    Command command;
    command.command = kind;
    if (kind == CommandKind::kSave) command.path = Folder(clock);
    command.until = clock;
    command.since = since;
    command.take = kind == CommandKind::kSave;
    return server_->Send(command);
  }
  // Runs the work that waits now, but not what that submits.
  std::optional<CommandDone> RunAndTake(CommandId id) {
    executor_.RunAll();
    server_->Tick();
    return server_->TakeAnswer(id);
  }
  void Commit(Clock clock, Clock since, const std::vector<SavedFile>& saved) {
    Manifest manifest;
    manifest.tables_digest = TablesDigest(job_);
    manifest.num_shards = job_.cluster.shards;
    manifest.clock = clock;
    manifest.files = saved;
    if (since > 0) {
      manifest.base_clock = since;
      manifest.base_checksum = ManifestChecksum(*ReadManifest(*files_, Folder(since)));
    }
    const Status written = WriteManifest(*files_, Folder(clock), manifest);
    ASSERT_TRUE(written.ok()) << written.message();
  }
  uint64_t DigestOf(Clock clock) {
    const std::unique_ptr<ServerHarness> other = NewServer();
    const CommandDone done = other->Run(CommandKind::kLoad, Folder(clock), clock);
    EXPECT_EQ(done.code, Code::kOk) << done.message;
    return other->Digest();
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  Job job_ = TestJob(Mode::kSync);
  LaterExecutor executor_;
  std::unique_ptr<ServerHarness> server_;
};

TEST_F(TakenSaves, HoldWhatWasThereWhateverComesBehindThem) {
  Clock since = 0;
  for (const Clock clock : {4, 8}) {
    Train(clock - 4, clock);
    const uint64_t then = DigestNow();
    const CommandId save = Ask(CommandKind::kSave, clock, since);
    const std::optional<CommandDone> taken = RunAndTake(save);
    ASSERT_TRUE(taken.has_value());
    EXPECT_EQ(taken->code, Code::kOk) << taken->message;
    EXPECT_TRUE(taken->taken);
    EXPECT_TRUE(taken->files.empty());
    // Not written yet, and pushes are applied.
    EXPECT_TRUE(files_->List(Folder(clock))->empty());
    const CommandId await = Ask(CommandKind::kAwaitSaved, clock);
    Train(clock, clock + 1);
    EXPECT_FALSE(server_->TakeAnswer(await).has_value());
    const std::optional<CommandDone> done = RunAndTake(await);
    ASSERT_TRUE(done.has_value());
    ASSERT_EQ(done->code, Code::kOk) << done->message;
    EXPECT_EQ(done->files.size(), job_.cluster.shards);
    EXPECT_EQ(files_->List(Folder(clock))->size(), 1u);
    const auto changes = std::ranges::count_if(done->files, HoldsChanges);
    EXPECT_EQ(static_cast<size_t>(changes), clock == 4 ? 0 : done->files.size());
    Commit(clock, since, done->files);
    EXPECT_NE(DigestNow(), then);
    EXPECT_EQ(DigestOf(clock), then);
    server_ = NewServer(&executor_);
    // From here it acts like one that never applied the step.
    Command load;
    load.command = CommandKind::kLoad;
    load.path = Folder(clock);
    load.until = clock;
    EXPECT_EQ(RunAndTake(server_->Send(load))->code, Code::kOk);
    since = clock;
  }
}

TEST_F(TakenSaves, AreToldAgainAndNotConfused) {
  Train(0, 4);
  ASSERT_TRUE(RunAndTake(Ask(CommandKind::kSave, 4))->taken);
  EXPECT_EQ(RunAndTake(Ask(CommandKind::kAwaitSaved, 4))->files.size(), job_.cluster.shards);
  EXPECT_EQ(RunAndTake(Ask(CommandKind::kAwaitSaved, 4))->files.size(), job_.cluster.shards);
  EXPECT_EQ(RunAndTake(Ask(CommandKind::kAwaitSaved, 8))->code, Code::kNotFound);
  server_ = NewServer(&executor_);
  EXPECT_EQ(RunAndTake(Ask(CommandKind::kAwaitSaved, 4))->code, Code::kNotFound);
}

TEST_F(TakenSaves, OnesThatCannotBeWrittenSayWhyAndAreNotBuiltOn) {
  Train(0, 4);
  ASSERT_TRUE(files_->RemoveAll("/out").ok());
  ASSERT_TRUE(RunAndTake(Ask(CommandKind::kSave, 4))->taken);
  const std::optional<CommandDone> done = RunAndTake(Ask(CommandKind::kAwaitSaved, 4));
  EXPECT_NE(done->code, Code::kOk);
  EXPECT_NE(done->message.find(Folder(4)), std::string::npos) << done->message;
  ASSERT_TRUE(files_->MakeDirectories(Folder(8)).ok());
  Train(4, 8);
  ASSERT_TRUE(RunAndTake(Ask(CommandKind::kSave, 8))->taken);
  const std::vector<SavedFile> saved = RunAndTake(Ask(CommandKind::kAwaitSaved, 8))->files;
  EXPECT_EQ(std::ranges::count_if(saved, HoldsChanges), 0);
}

TEST_F(TakenSaves, TheNextOneWaitsForTheFilesOfTheOneBefore) {
  Train(0, 4);
  ASSERT_TRUE(RunAndTake(Ask(CommandKind::kSave, 4))->taken);
  const CommandId next = Ask(CommandKind::kSave, 8);
  server_->Tick();
  EXPECT_TRUE(files_->List(Folder(4))->empty());
  executor_.RunAll();  // Does the work of the first save.
  EXPECT_EQ(files_->List(Folder(4))->size(), 1u);
  server_->Tick();
  EXPECT_TRUE(RunAndTake(next)->taken);
}

// A server under a memory limit with rows on disk, whose requests do not wait for a save's file.
class TakenSavesUnderALimit : public testing::Test {
 protected:
  static constexpr uint32_t kDim = 256;
  static constexpr size_t kKeys = 500;

  void TearDown() override { writes_.RunAll(); }  // A server ends after its writes.

  static Job JobOf() {
    Job job = TestJob(Mode::kAsync);
    job.tables[1] = TableOf("deep", kDim, OptimizerKind::kSgd);
    job.cluster.memory_limit = 24 << 20;
    job.cluster.spill_path = testing::TempDir() + "/taken_" + std::to_string(NewPeerId().value);
    job.checkpoint.delta_every_steps = 4;
    return job;
  }
  static std::string Folder(Clock clock) { return "/out/checkpoint/" + CheckpointName(clock); }

  void Push(Key first, size_t keys) {
    TableRows rows = {1, kDim, {}, std::vector<float>(keys * kDim, 1)};
    for (Key key = 0; key < keys; ++key) rows.keys.push_back(first + key);
    const uint64_t id = server_.Push(0, static_cast<uint64_t>(clock_), clock_, 1, {rows});
    EXPECT_EQ(server_.Ack(id).code, Code::kOk);
    server_.Advance(0, ++clock_);
  }
  // Stores rows as a worker that keeps rows does when a round ends.
  void Store(Key first, size_t keys, float value) {
    TableRows rows = {1, kDim, {}, std::vector<float>(keys * kDim, value)};
    for (Key key = 0; key < keys; ++key) rows.keys.push_back(first + key);
    const uint64_t request = 1'000'000 + stores_;
    server_.FromPeer(ServerHarness::WorkerPeer(0), server_.StoreOf(stores_++, clock_, {rows}),
                     request);
    const std::optional<StoreAck> ack = server_.TakeReply<StoreAck>(request);
    ASSERT_TRUE(ack.has_value());
    EXPECT_EQ(ack->code, Code::kOk) << ack->message;
  }
  // Reads rows, which moves others to disk.
  void Read(Key first, size_t keys) {
    std::vector<Key> all(keys);
    std::iota(all.begin(), all.end(), first);
    EXPECT_EQ(server_.Read(1, all).size(), keys * kDim);
  }
  double RowsOnDisk() {
    std::vector<double> rows;  // Of both tables, in memory and on disk.
    const FigureLayout layout(FigureRole::kServer, 2);
    for (const Sample& sample : SamplesOf(layout, server_.node().ReadFigures(), {"wide", "deep"})) {
      if (sample.figure == FigureNamed("hdps_server_rows")) rows.push_back(sample.value);
    }
    return rows.at(3);
  }
  CommandId Ask(CommandKind kind, Clock clock, Clock since) {
    Command command;
    command.command = kind;
    command.path = Folder(clock);
    command.until = clock;
    command.since = since;
    command.take = kind == CommandKind::kSave;
    EXPECT_TRUE(files_->MakeDirectories(command.path).ok());
    return server_.Send(command);
  }
  // Has a save taken, of which nothing is written yet.
  void Take(Clock clock, Clock since) {
    const std::optional<CommandDone> taken =
        server_.TakeAnswer(Ask(CommandKind::kSave, clock, since));
    ASSERT_TRUE(taken.has_value());
    ASSERT_EQ(taken->code, Code::kOk) << taken->message;
    EXPECT_TRUE(taken->taken);
    EXPECT_TRUE(taken->files.empty());
    EXPECT_TRUE(files_->List(Folder(clock))->empty());
  }
  // Has it written now, and loads it: it must have the digest of its time.
  void Write(Clock clock, Clock since, uint64_t digest, bool changes) {
    EXPECT_NE(server_.Digest(), digest);
    const CommandId await = Ask(CommandKind::kAwaitSaved, clock, 0);
    EXPECT_FALSE(server_.TakeAnswer(await).has_value());
    EXPECT_EQ(writes_.RunAll(), 1u);
    server_.Tick();
    const std::optional<CommandDone> done = server_.TakeAnswer(await);
    ASSERT_TRUE(done.has_value());
    ASSERT_EQ(done->code, Code::kOk) << done->message;
    EXPECT_EQ(std::ranges::all_of(done->files, HoldsChanges), changes);
    Commit(clock, since, done->files);
    ServerHarness other({.job = JobOf(), .workers = 1}, files_.get());
    EXPECT_EQ(other.Run(CommandKind::kLoad, Folder(clock), clock).code, Code::kOk);
    EXPECT_EQ(other.Digest(), digest);
  }
  void Commit(Clock clock, Clock since, const std::vector<SavedFile>& saved) {
    Manifest manifest;
    manifest.tables_digest = TablesDigest(server_.job());
    manifest.num_shards = server_.job().cluster.shards;
    manifest.clock = clock;
    manifest.files = saved;
    if (since > 0) {
      manifest.base_clock = since;
      manifest.base_checksum = ManifestChecksum(*ReadManifest(*files_, Folder(since)));
    }
    ASSERT_TRUE(WriteManifest(*files_, Folder(clock), manifest).ok());
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  LaterExecutor writes_;
  ServerHarness server_{{.job = JobOf(), .workers = 1, .file_writes = &writes_}, files_.get()};
  Clock clock_ = 0;
  uint64_t stores_ = 0;
};

TEST_F(TakenSavesUnderALimit, AreOfTheirTimeAndWrittenLater) {
  for (Key first = 0; first < 100 * kKeys && RowsOnDisk() == 0; first += kKeys) Push(first, kKeys);
  ASSERT_GT(RowsOnDisk(), 0);
  const Clock whole = clock_;
  uint64_t digest = server_.Digest();
  Take(whole, 0);
  // Rows of both tiers change before they are written, and others move.
  Push(0, kKeys);
  Push(kKeys, kKeys / 2);
  Write(whole, 0, digest, false);

  // Changed rows of which some go to disk again, behind them new ones.
  Push(0, kKeys);
  for (Key first = 200 * kKeys; first < 202 * kKeys; first += kKeys / 2) Push(first, kKeys / 2);
  for (Key first = kKeys; first < whole * kKeys; first += kKeys) Read(first, kKeys);
  const Clock then = clock_;
  digest = server_.Digest();
  Take(then, whole);
  Push(0, kKeys);
  Write(then, whole, digest, true);

  // More changes than may be copied.
  for (Key first = 0; first < whole * kKeys; first += kKeys) Push(first, kKeys);
  const Clock last = clock_;
  digest = server_.Digest();
  Take(last, then);
  Push(0, kKeys);
  Write(last, then, digest, true);
}

TEST_F(TakenSavesUnderALimit, AreWrittenAtOnceIfRowsWereStoredAtTheirClock) {
  // More rows in each shard than may be copied.
  for (Key first = 0; first < 60 * kKeys; first += kKeys) Push(first, kKeys);
  ASSERT_GT(RowsOnDisk(), 0);
  const Clock whole = clock_;
  Store(0, kKeys, 7);
  const uint64_t digest = server_.Digest();
  const std::optional<CommandDone> done = server_.TakeAnswer(Ask(CommandKind::kSave, whole, 0));
  ASSERT_TRUE(done.has_value());
  ASSERT_EQ(done->code, Code::kOk) << done->message;
  EXPECT_FALSE(done->taken);
  EXPECT_EQ(done->files.size(), server_.job().cluster.shards);
  Commit(whole, 0, done->files);
  ServerHarness other({.job = JobOf(), .workers = 1}, files_.get());
  EXPECT_EQ(other.Run(CommandKind::kLoad, Folder(whole), whole).code, Code::kOk);
  EXPECT_EQ(other.Digest(), digest);

  // A delta that builds on it may hold the stored rows again.
  Push(0, kKeys);
  const Clock then = clock_;
  const uint64_t later = server_.Digest();
  Take(then, whole);
  Push(0, kKeys);
  Write(then, whole, later, true);
}

TEST_F(TakenSavesUnderALimit, EndWithTheRowsThatTheyAreOf) {
  for (Key first = 0; first < 100 * kKeys && RowsOnDisk() == 0; first += kKeys) Push(first, kKeys);
  Take(clock_, 0);
  Command anew;
  anew.command = CommandKind::kLoad;
  EXPECT_EQ(server_.TakeAnswer(server_.Send(anew))->code, Code::kOk);
  const CommandId await = Ask(CommandKind::kAwaitSaved, clock_, 0);
  writes_.RunAll();
  server_.Tick();
  const std::optional<CommandDone> done = server_.TakeAnswer(await);
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->code, Code::kUnavailable);
  EXPECT_NE(done->message.find("dropped before they were written"), std::string::npos);
}

}  // namespace
}  // namespace hdps
