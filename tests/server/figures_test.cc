// Tests what a server counts of its requests, rows and saves.
#include <memory>
#include <string>
#include <vector>

#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/manifest.h"
#include "common/protocol/row_messages.h"
#include "common/telemetry/samples.h"
#include "gtest/gtest.h"
#include "server/watch/server_meters.h"
#include "tests/common/platform/settable_clock.h"
#include "tests/server/server_harness.h"

namespace hdps {
namespace {

class ServerFiguresTest : public testing::Test {
 protected:
  ServerSetting Setting(Mode mode) {
    ServerSetting setting{.job = TestJob(mode), .workers = 2};
    setting.job.tables.push_back(TableOf("pieces", 1, OptimizerKind::kSgd));
    setting.job.tables.back().dense = true;
    setting.clock = &clock_;
    return setting;
  }
  static std::vector<Sample> All(ServerHarness& server, FigureId figure) {
    std::vector<Sample> found;
    const FigureLayout layout(FigureRole::kServer, 2);
    for (Sample& sample : SamplesOf(layout, server.node().ReadFigures(), {"wide", "deep"})) {
      if (sample.figure == figure) found.push_back(std::move(sample));
    }
    return found;
  }
  static std::vector<double> Values(ServerHarness& server, FigureId figure) {
    std::vector<double> values;
    for (const Sample& sample : All(server, figure)) values.push_back(sample.value);
    return values;
  }
  static Sample Only(ServerHarness& server, FigureId figure) {
    const std::vector<Sample> all = All(server, figure);
    EXPECT_EQ(all.size(), 1u);
    return all.at(0);
  }

  SettableClock clock_;
};

using Numbers = std::vector<double>;

TEST_F(ServerFiguresTest, ParkedPullsWaitFromTheirFirstCopyOn) {
  constexpr FigureId kWait = FigureNamed("hdps_server_gate_wait_seconds");
  constexpr FigureId kPull = FigureNamed("hdps_server_pull_seconds");
  ServerHarness server(Setting(Mode::kSync));
  const std::vector<TableRows> rows = {{0, 1, {7}, {}}};
  const auto push = [&](uint32_t worker, Clock clock) {
    server.Push(worker, static_cast<uint64_t>(clock), clock, 1, {{0, 1, {7}, {1}}});
  };
  push(0, 0);
  const PullRequest pull = server.PullOf(1, PullMode::kTrain, rows);
  constexpr uint64_t kId = 77;
  server.FromPeer(ServerHarness::WorkerPeer(0), pull, kId);
  clock_.now_ms += 2000;
  server.FromPeer(ServerHarness::WorkerPeer(0), pull, kId);  // A repeat.
  EXPECT_EQ(CountOf(Only(server, kWait)), 0u);
  clock_.now_ms += 500;
  push(1, 0);
  ASSERT_TRUE(server.TakeReply<PullReply>(kId).has_value());
  EXPECT_EQ(CountOf(Only(server, kWait)), 1u);
  EXPECT_EQ(Only(server, kWait).sum, 2.5);
  EXPECT_EQ(CountOf(Only(server, kPull)), 1u);
  EXPECT_EQ(Only(server, kPull).sum, 0);  // Serving took no time by this clock.

  // Another request in its place waits for its own time.
  push(0, 1);
  server.FromPeer(ServerHarness::WorkerPeer(0), server.PullOf(2, PullMode::kTrain, rows), kId + 1);
  clock_.now_ms += 3000;
  server.FromPeer(ServerHarness::WorkerPeer(0), server.PullOf(2, PullMode::kTrain, rows), kId + 2);
  clock_.now_ms += 1000;
  push(1, 1);
  EXPECT_EQ(CountOf(Only(server, kWait)), 2u);
  EXPECT_EQ(Only(server, kWait).sum, 2.5 + 1);
}

TEST_F(ServerFiguresTest, RequestsKeysAndRowsAreCountedByTable) {
  ServerHarness server(Setting(Mode::kAsync));
  server.Push(0, 0, 0, 1, {{0, 1, {7, 8, 9}, {1, 1, 1}}, {1, 2, {7}, {1, 1}}, {2, 1, {1}, {1}}});
  server.Push(1, 0, 0, 1, {{0, 1, {7}, {1}}});
  server.Pull(0, 1, PullMode::kTrain, {{0, 1, {7, 8, 50}, {}}, {2, 1, {1}, {}}});
  server.Pull(1, 1, PullMode::kRead, {{1, 2, {7, 8}, {}}});
  EXPECT_EQ(Values(server, FigureNamed("hdps_server_pushes_total")), Numbers({2}));
  EXPECT_EQ(CountOf(Only(server, FigureNamed("hdps_server_push_seconds"))), 2u);
  EXPECT_EQ(Values(server, FigureNamed("hdps_server_pulls_total")), Numbers({2}));
  EXPECT_EQ(Values(server, FigureNamed("hdps_server_keys_total")), Numbers({3, 2}));
  EXPECT_EQ(Values(server, FigureNamed("hdps_server_rows")), Numbers({3, 0, 1, 0}));
  EXPECT_EQ(Values(server, FigureNamed("hdps_server_rows_admitted_total")), Numbers({3, 1}));
  EXPECT_GT(Values(server, FigureNamed("hdps_server_row_bytes"))[0], 0);
  EXPECT_EQ(Values(server, FigureNamed("hdps_server_row_bytes"))[1], 0);
}

TEST_F(ServerFiguresTest, ABackupsRowsAreNotCounted) {
  ServerSetting setting = Setting(Mode::kAsync);
  ServerHarness server(setting);
  server.Push(0, 0, 0, 1, {{0, 1, {7}, {1}}});
  EXPECT_EQ(Values(server, FigureNamed("hdps_server_rows"))[0], 1);
  // Now another server is the primary, and this one its backup.
  Member self = server.view().servers[0];
  self.rank = 1;
  server.view().servers[0] = {{500}, 0, "inproc://other"};
  server.view().backups.push_back({{0}, self});
  server.view().view.value += 1;
  server.SendView();
  EXPECT_EQ(Values(server, FigureNamed("hdps_server_rows"))[0], 0);
}

TEST_F(ServerFiguresTest, ASaveCountsItsTimeAndBytesOnce) {
  constexpr FigureId kSave = FigureNamed("hdps_server_save_seconds");
  constexpr FigureId kBytes = FigureNamed("hdps_server_saved_bytes_total");
  for (const bool take : {false, true}) {
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    LaterExecutor executor;
    ServerHarness server(Setting(Mode::kAsync), files.get(), &executor);
    server.Push(0, 0, 0, 1, {{0, 1, {7, 8, 9}, {1, 1, 1}}});
    Command save;
    save.command = CommandKind::kSave;
    save.path = "/out/checkpoint/" + CheckpointName(4);
    save.until = 4;
    save.take = take;
    EXPECT_TRUE(files->MakeDirectories(save.path).ok());
    const CommandId id = server.Send(save);
    server.Push(0, 1, 1, 1, {{0, 1, {10}, {1}}});  // Refused: a command is running.
    EXPECT_EQ(Values(server, FigureNamed("hdps_server_rows"))[0], 0);  // None were read before it.
    clock_.now_ms += 40;
    executor.RunAll();
    server.Tick();
    const auto done = server.TakeAnswer(id);
    ASSERT_TRUE(done.has_value() && done->code == Code::kOk);
    EXPECT_EQ(done->taken, take);
    if (take) {
      EXPECT_EQ(CountOf(Only(server, kSave)), 0u);
      clock_.now_ms += 60;
      executor.RunAll();
    }
    EXPECT_EQ(CountOf(Only(server, kSave)), 1u);
    EXPECT_DOUBLE_EQ(Only(server, kSave).sum, take ? 0.1 : 0.04);
    EXPECT_GT(Values(server, kBytes)[0], 100);
    EXPECT_EQ(Values(server, FigureNamed("hdps_server_rows"))[0], 3);
  }
}

TEST_F(ServerFiguresTest, RowsThatMoveToAnotherServerAreNoCheckpoint) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  ServerHarness server(Setting(Mode::kAsync), files.get());
  server.Push(0, 0, 0, 1, {{0, 1, {7, 8, 9}, {1, 1, 1}}});
  Command save;
  save.command = CommandKind::kSave;
  save.path = "/out/checkpoint/" + CheckpointName(4);
  save.until = 4;
  save.shards = {{0}, {1}};
  EXPECT_TRUE(files->MakeDirectories(save.path).ok());
  const auto done = server.TakeAnswer(server.Send(save));
  ASSERT_TRUE(done.has_value() && done->code == Code::kOk) << (done ? done->message : "");
  EXPECT_EQ(CountOf(Only(server, FigureNamed("hdps_server_save_seconds"))), 0u);
  EXPECT_EQ(Values(server, FigureNamed("hdps_server_saved_bytes_total")), Numbers({0}));
}

TEST_F(ServerFiguresTest, RowsThatWaitForRoomOnTheDiskAreTold) {
  ServerMeters meters(TestJob(Mode::kSync), nullptr);
  for (const bool waits : {true, false}) {
    for (const Sample& sample :
         SamplesOf(meters.meters().layout(), meters.ReadWhile(waits, 0), {"wide", "deep"})) {
      if (sample.figure == FigureNamed("hdps_server_disk_waits")) {
        EXPECT_EQ(sample.value, waits);
      }
    }
  }
}

}  // namespace
}  // namespace hdps
