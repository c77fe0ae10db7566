// Tests the scheduler's commands to a server: save, load, digest, finish; and rows that are stored.
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/shard_map.h"
#include "common/job/job_file.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/platform/random.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/manifest.h"
#include "common/protocol/row_messages.h"
#include "gtest/gtest.h"
#include "tests/server/server_harness.h"

namespace hdps {
namespace {

constexpr char kFolder[] = "/run/checkpoint/saved";

Job StatefulJob() {
  Job job = TestJob(Mode::kSync);
  job.tables = {TableOf("wide", 1, OptimizerKind::kFtrl), TableOf("deep", 4, OptimizerKind::kAdam),
                TableOf("dense", 8, OptimizerKind::kLamb)};
  for (TableSpec& table : job.tables) table.init = {InitKind::kUniform, 0.1f};
  job.tables[2].dense = true;
  job.tables[2].shard_by = ShardBy::kGroup;
  return job;
}

// All servers of a cluster on one file system.
struct Servers {
  Servers(const Job& job, uint32_t count, FileSystem& files, Executor* executor = nullptr) {
    for (uint32_t rank = 0; rank < count; ++rank) {
      all.push_back(std::make_unique<ServerHarness>(
          ServerSetting{.job = job, .workers = 1, .servers = count, .rank = rank}, &files,
          executor));
    }
  }
  void Train(Clock from, Clock until) {
    for (Clock clock = from; clock < until; ++clock) {
      for (const auto& server : all) {
        Random random(static_cast<uint64_t>(clock));
        std::vector<TableRows> rows = {{0, 1, {}, {}}, {1, 4, {}, {}}, {2, 8, {}, {}}};
        for (TableRows& table : rows) {
          for (uint64_t i = 0; i < 50; ++i) {
            const bool dense = table.table == 2;
            table.keys.push_back(dense ? (i % 5 << 32 | i / 5) : clock * 20 + i);
            for (uint32_t f = 0; f < table.row_floats; ++f) {
              table.floats.push_back(static_cast<float>(random.Normal()));
            }
          }
        }
        server->Push(0, static_cast<uint64_t>(clock), clock, 4, rows);
        server->Advance(0, clock + 1);
      }
    }
  }
  uint64_t Digest() {
    uint64_t sum = 0;
    for (const auto& server : all) sum += server->Digest();
    return sum;
  }
  // Saves all shards and writes the manifest, like the scheduler.
  void Save(FileSystem& files, const std::string& folder, Clock clock) {
    const Job& job = all[0]->job();
    Manifest manifest;
    manifest.job_name = job.name;
    manifest.job_digest = JobDigest(job);
    manifest.tables_digest = TablesDigest(job);
    manifest.num_shards = job.cluster.shards;
    manifest.clock = clock;
    manifest.job_json = "{}";
    for (const auto& server : all) {
      const CommandDone done = server->Run(CommandKind::kSave, folder, clock);
      ASSERT_EQ(done.code, Code::kOk) << done.message;
      manifest.files.insert(manifest.files.end(), done.files.begin(), done.files.end());
    }
    ASSERT_EQ(manifest.files.size(), job.cluster.shards);
    const Status written = WriteManifest(files, folder, manifest);
    ASSERT_TRUE(written.ok()) << written.message();
  }
  std::vector<std::unique_ptr<ServerHarness>> all;
};

TEST(Commands, ACheckpointOfFourServersLoadsOnAnyNumberAndGoesOnAlike) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const Job job = StatefulJob();
  Servers four(job, 4, *files);
  four.Train(0, 6);
  const uint64_t digest = four.Digest();
  four.Save(*files, "/run/checkpoint/step_6", 6);
  EXPECT_EQ(four.Digest(), digest);
  four.Train(6, 9);
  for (const uint32_t count : {1u, 2u, 3u, 5u, 12u}) {
    Servers others(job, count, *files);  // 12 servers for 8 shards: some have none.
    for (const auto& server : others.all) {
      const CommandDone done = server->Run(CommandKind::kLoad, "/run/checkpoint/step_6", 6);
      ASSERT_EQ(done.code, Code::kOk) << done.message;
    }
    EXPECT_EQ(others.Digest(), digest) << count;
    others.Train(6, 9);
    EXPECT_EQ(others.Digest(), four.Digest()) << count;
  }
}

TEST(Commands, LoadedClocksHoldForTheGate) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  Servers servers(StatefulJob(), 1, *files);
  servers.Save(*files, kFolder, 40);
  ServerHarness& server = *servers.all[0];
  ASSERT_EQ(server.Run(CommandKind::kLoad, kFolder, 40).code, Code::kOk);
  const uint64_t now = server.Pull(0, 40, PullMode::kTrain, {{0, 1, {7}, {}}});
  EXPECT_EQ(server.TakeReply<PullReply>(now)->min_clock, 40);
  const uint64_t later = server.Pull(0, 41, PullMode::kTrain, {{0, 1, {7}, {}}});
  EXPECT_FALSE(server.TakeReply<PullReply>(later).has_value());
  servers.Train(40, 41);
  EXPECT_TRUE(server.TakeReply<PullReply>(later).has_value());
}

// The scheduler may have heard of fewer steps, and the worker may be dead.
TEST(Commands, ALoadTellsHowFarTheFastestWorkerWas) {
  ServerHarness server({.job = TestJob(Mode::kAsync), .workers = 2});
  EXPECT_EQ(server.Run(CommandKind::kLoad, "", 0).clock, 0);
  server.Advance(0, 3);
  server.Advance(1, 7);
  EXPECT_EQ(server.Run(CommandKind::kLoad, "", 5).clock, 7);
  EXPECT_EQ(server.Run(CommandKind::kLoad, "", 2).clock, 5);
  server.Advance(1, 9);
  ++server.view().view.value;
  ++server.view().restarts;
  server.view().workers.pop_back();  // Worker 1 is lost.
  server.SendView();
  EXPECT_EQ(server.Run(CommandKind::kLoad, "", 2).clock, 9);
}

TEST(Commands, ADamagedOrForeignCheckpointLeavesTheServerEmpty) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const Job job = StatefulJob();
  Servers source(job, 2, *files);
  source.Train(0, 3);
  source.Save(*files, kFolder, 3);
  ServerHarness& server = *source.all[0];

  Job other = job;
  other.tables[1].dim = 5;
  Servers foreign(other, 1, *files);
  EXPECT_EQ(foreign.all[0]->Run(CommandKind::kLoad, kFolder, 3).code, Code::kInvalidArgument);
  // The checkpoint has another clock.
  EXPECT_EQ(server.Run(CommandKind::kLoad, kFolder, 4).code, Code::kCorruption);
  EXPECT_EQ(server.Run(CommandKind::kLoad, "/run/checkpoint/nowhere", 3).code, Code::kNotFound);
  ASSERT_EQ(server.Run(CommandKind::kLoad, kFolder, 3).code, Code::kOk);

  const std::string path = JoinPath(kFolder, "shard_004.snapshot");
  std::string bytes = *ReadWholeFile(*files, path, 1 << 24);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(*files, path, bytes).ok());
  const CommandDone done = server.Run(CommandKind::kLoad, kFolder, 3);
  EXPECT_EQ(done.code, Code::kCorruption);
  EXPECT_NE(done.message.find(path), std::string::npos) << done.message;
  EXPECT_EQ(server.Run(CommandKind::kDigest).rows, 0u);
}

// A process that gets to command a server must not reach every file of the server's user.
TEST(Commands, FoldersThatHoldNoCheckpointsAreNeitherReadNorWritten) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  ServerHarness server({.job = TestJob(Mode::kSync), .workers = 1}, files.get());
  for (const std::string& path :
       {std::string(), std::string("/"), std::string("/etc/x"), std::string("/run/checkpoint"),
        std::string("/run/checkpoint/"), std::string("/run/checkpoint/."),
        std::string("/run/checkpoint/.."), std::string("/run/../checkpoint/x"),
        std::string("/run/checkpoint/../checkpoint/x"), std::string("/run/checkpoint/a/b"),
        std::string("/run/checkpoint/a\0b", 19)}) {
    for (const CommandKind kind : {CommandKind::kSave, CommandKind::kLoad}) {
      if (kind == CommandKind::kLoad && path.empty()) continue;  // An empty path starts anew.
      const CommandDone done = server.Run(kind, path, 0);
      EXPECT_EQ(done.code, Code::kInvalidArgument) << path;
      EXPECT_NE(done.message.find("OUT/checkpoint/NAME"), std::string::npos) << done.message;
    }
    for (const char* made : {"/run", "/etc"}) EXPECT_FALSE(files->Exists(made));
  }
  EXPECT_EQ(server.Run(CommandKind::kSave, kFolder, 0).code, Code::kOk);
}

TEST(Commands, FinishEndsWithStatusZeroAndOthersAreRefused) {
  ServerHarness server({.job = TestJob(Mode::kSync), .workers = 1});
  EXPECT_EQ(server.Run(CommandKind::kTrain).code, Code::kInvalidArgument);
  EXPECT_FALSE(server.node().done());
  EXPECT_EQ(server.Run(CommandKind::kFinish).code, Code::kOk);
  for (int i = 0; i < 20 && !server.node().done(); ++i) server.Tick();
  EXPECT_TRUE(server.node().done());
  EXPECT_EQ(server.node().exit_status(), 0);
}

TEST(Commands, StoredRowsComeBackWithAndWithoutState) {
  Job job = TestJob(Mode::kSync);
  job.tables = {TableOf("deep", 2, OptimizerKind::kAdagrad)};
  ServerHarness server({.job = job, .workers = 1});
  const PeerId worker = ServerHarness::WorkerPeer(0);
  for (int repeat = 0; repeat < 2; ++repeat) {
    server.FromPeer(worker, server.StoreOf(0, 0, {{0, 2, {5}, {1, 2}}}), 1);
    EXPECT_EQ(server.TakeReply<StoreAck>(1)->code, Code::kOk);
  }
  auto with_state = [&](Key key) {
    const uint64_t id = server.Pull(0, 0, PullMode::kWithState, {{0, 4, {key}, {}}});
    const auto rows = server.TakeReply<PullReply>(id)->rows;
    return std::vector<float>(rows.As<float>().begin(), rows.As<float>().end());
  };
  EXPECT_EQ(with_state(5), (std::vector<float>{1, 2, 0.1f, 0.1f}));
  server.FromPeer(worker, server.StoreOf(1, 0, {{0, 4, {6}, {1, 2, 3, 4}}}), 2);
  EXPECT_EQ(with_state(6), (std::vector<float>{1, 2, 3, 4}));
  with_state(7);
  server.Pull(0, 0, PullMode::kTrain, {{0, 2, {7}, {}}});
  EXPECT_EQ(server.Run(CommandKind::kDigest).rows, 2u);  // Reading created no row.
}

TEST(Commands, RowsRestWhileACommandWorksOnThem) {
  LaterExecutor executor;
  ServerHarness server({.job = TestJob(Mode::kSync), .workers = 1}, nullptr, &executor);
  Command digest;
  digest.id = {50};
  digest.command = CommandKind::kDigest;
  server.FromPeer(kSchedulerPeer, digest, 0);
  server.FromPeer(kSchedulerPeer, digest, 0);  // Repeated: still one.
  server.FromPeer(ServerHarness::WorkerPeer(0), server.PushOf(0, 0, 1, {{0, 1, {7}, {1}}}), 9);
  server.Tick();
  EXPECT_EQ(server.Ack(9).code, Code::kUnavailable);
  EXPECT_EQ(executor.RunAll(), 1u);
  server.Tick();
  CommandDone done;
  bool answered = false;
  for (const Outgoing& reply : server.replies()) {
    answered = answered || DecodeMessage(reply.frame, &done).ok();
  }
  EXPECT_TRUE(answered);
  EXPECT_EQ(done.rows, 0u);
  // The repeated push finds the server free.
  EXPECT_EQ(server.Ack(server.Push(0, 0, 0, 1, {{0, 1, {7}, {1}}})).code, Code::kOk);
  EXPECT_EQ(server.node().counters().steps, 1u);
}

TEST(Commands, InTheBackgroundOnRealThreads) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const std::unique_ptr<Executor> executor = NewTbbExecutor(2);
  const Job job = StatefulJob();
  Servers servers(job, 2, *files, executor.get());
  servers.Train(0, 5);
  const uint64_t digest = servers.Digest();
  servers.Save(*files, kFolder, 5);
  Servers again(job, 1, *files, executor.get());
  ASSERT_EQ(again.all[0]->Run(CommandKind::kLoad, kFolder, 5).code, Code::kOk);
  EXPECT_EQ(again.Digest(), digest);
}

}  // namespace
}  // namespace hdps
