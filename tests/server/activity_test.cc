// Tests the activity that a server reports: which workers it makes wait, and since when.
#include <gtest/gtest.h>

#include <vector>

#include "common/job/spec/train_spec.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/row_messages.h"
#include "tests/server/server_harness.h"

namespace hdps {
namespace {

constexpr PeerId kWorker0 = ServerHarness::WorkerPeer(0), kWorker1 = ServerHarness::WorkerPeer(1);

// Returns the activity in the last of the next heartbeats.
Activity Said(ServerHarness& server) {
  server.TakeHeartbeats();
  Heartbeat heartbeat;
  bool said = false;
  for (int tick = 0; tick < 60; ++tick) server.Tick();
  for (const Outgoing& out : server.replies()) {
    if (out.frame.header.kind != static_cast<uint16_t>(Heartbeat::kKind)) continue;
    said = DecodeMessage(out.frame, &heartbeat).ok();
  }
  EXPECT_TRUE(said);
  return heartbeat.activity;
}

std::vector<PeerId> PeersOf(const Activity& activity) {
  std::vector<PeerId> peers;
  for (const Awaited& awaited : activity.awaited) peers.push_back(awaited.peer);
  return peers;
}

TEST(ServerActivity, PullsWaitForWorkersThatHaveNotPushed) {
  ServerHarness server({.job = TestJob(Mode::kSync), .workers = 3});
  server.Run(CommandKind::kLoad);
  EXPECT_EQ(Said(server).wait_reason, WaitReason::kCommand);
  server.Push(0, 0, 0, 1, {{0, 1, {7}, {1}}});
  EXPECT_EQ(Said(server).wait_reason, WaitReason::kCommand);  // Nobody waits for what is missing.
  server.Pull(0, 1, PullMode::kTrain, {{0, 1, {7}, {}}});
  const Activity first = Said(server);
  EXPECT_EQ(first.wait_reason, WaitReason::kMembers);
  EXPECT_EQ(PeersOf(first), (std::vector<PeerId>{kWorker1, ServerHarness::WorkerPeer(2)}));
  const Activity later = Said(server);
  EXPECT_GE(later.for_ms, first.for_ms + 1000);
  EXPECT_EQ(later.awaited[0].for_ms, later.for_ms);
  server.Push(2, 0, 0, 1, {{0, 1, {7}, {1}}});
  EXPECT_EQ(PeersOf(Said(server)), (std::vector<PeerId>{kWorker1}));
  server.Push(1, 0, 0, 1, {{0, 1, {7}, {1}}});
  EXPECT_EQ(Said(server).wait_reason, WaitReason::kCommand);
}

TEST(ServerActivity, PullsWaitForTheSlowestAtTheBound) {
  Job job = TestJob(Mode::kSsp);
  job.train.staleness_bound = 1;
  ServerHarness server({.job = job, .workers = 2});
  server.Run(CommandKind::kLoad);
  for (Clock clock = 1; clock <= 2; ++clock) server.Advance(0, clock);
  server.Pull(0, 2, PullMode::kTrain, {{0, 1, {7}, {}}});
  EXPECT_EQ(PeersOf(Said(server)), (std::vector<PeerId>{kWorker1}));
  server.Advance(1, 1);
  EXPECT_TRUE(PeersOf(Said(server)).empty());
}

TEST(ServerActivity, ACommandThatTakesLong) {
  LaterExecutor later;
  ServerHarness server({.job = TestJob(Mode::kSync), .workers = 1}, nullptr, &later);
  Command command;
  command.command = CommandKind::kLoad;
  server.Send(command);
  later.RunAll();
  server.Tick();
  command.command = CommandKind::kSave;
  command.until = 3;
  command.path = "out/checkpoint/step_3";
  server.Send(command);
  const Activity saves = Said(server);
  EXPECT_EQ(saves.stage, "save");
  EXPECT_EQ(saves.subject, "out/checkpoint/step_3");
  EXPECT_EQ(saves.wait_reason, WaitReason::kDisk);
  EXPECT_GT(saves.for_ms, 500);
  later.RunAll();
  EXPECT_EQ(Said(server).stage, "serve");
}

}  // namespace
}  // namespace hdps
