// Tests requests that are wrong, from strangers, of other views, or damaged: refused or dropped,
// never applied, never fatal.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/job/spec/train_spec.h"
#include "common/platform/random.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/view.h"
#include "gtest/gtest.h"
#include "tests/server/server_harness.h"

namespace hdps {
namespace {

const std::vector<TableRows> kRows = {{0, 1, {7, 8, 9}, {1, 2, 3}}, {1, 2, {4}, {5, 6}}};

class Refusal : public testing::Test {
 protected:
  // Expects that a push which was changed before it was sent is refused, without an effect.
  void ExpectRefused(const PushRequest& push, const std::string& needle) {
    const uint64_t before = server_.Digest();
    server_.FromPeer(ServerHarness::WorkerPeer(0), push, 500);
    const PushAck ack = server_.Ack(500);
    EXPECT_EQ(ack.code, Code::kCorruption) << needle;
    EXPECT_NE(ack.message.find(needle), std::string::npos) << ack.message;
    EXPECT_EQ(ack.sequence, push.sequence);
    EXPECT_EQ(server_.Digest(), before) << needle;
    // It is not recorded as applied either: the right push of this sequence is still the first.
    EXPECT_EQ(server_.node().counters().pushes_repeated, 0u);
  }
  PushRequest Good() { return server_.PushOf(0, 0, 1, kRows); }

  ServerHarness server_{{.job = TestJob(Mode::kAsync), .workers = 2}};
};

TEST_F(Refusal, WrongPushes) {
  PushRequest push = Good();
  push.tables[1].table = {2};
  ExpectRefused(push, "table 2");

  push = Good();
  push.tables[0].shard_counts.push_back(0);
  ExpectRefused(push, "9 shards");

  push = Good();  // The number of floats is right, but the tables have other dims.
  push.tables[0].row_floats = 1;
  push.tables[1].row_floats = 1;
  push.gradients = Buffer::CopyOf<float>(std::vector<float>(4));
  ExpectRefused(push, "rows of 1 floats, expected 2");

  push = Good();  // Keys of one shard are counted for another.
  std::vector<uint32_t>& counts = push.tables[0].shard_counts;
  std::rotate(counts.begin(), counts.begin() + 1, counts.end());
  ExpectRefused(push, "belongs to shard");

  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<TableRows> rows = kRows;
    rows[1].floats[1] = bad;
    ExpectRefused(server_.PushOf(0, 0, 1, rows), "table 'deep': a value of key 4 is");
  }
  EXPECT_EQ(server_.Ack(server_.Push(0, 0, 0, 1, kRows)).code, Code::kOk);
  EXPECT_EQ(server_.node().counters().refused, 6u);
}

TEST_F(Refusal, WrongPullsAndStores) {
  PullRequest pull = server_.PullOf(0, PullMode::kTrain, kRows);
  pull.tables[1].row_floats = 7;
  server_.FromPeer(ServerHarness::WorkerPeer(0), pull, 1);
  const auto reply = server_.TakeReply<PullReply>(1);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->code, Code::kCorruption);
  EXPECT_TRUE(reply->rows.empty());

  StoreRequest store = server_.StoreOf(0, 0, kRows);
  store.tables[0].shard_counts.assign(8, 0);
  store.tables[0].shard_counts[0] = 3;
  server_.FromPeer(ServerHarness::WorkerPeer(0), store, 2);
  const auto ack = server_.TakeReply<StoreAck>(2);
  ASSERT_TRUE(ack.has_value());
  EXPECT_EQ(ack->code, Code::kCorruption);
  EXPECT_EQ(server_.Run(CommandKind::kDigest).rows, 0u);
}

TEST_F(Refusal, StrangersAndOtherViews) {
  const PushRequest push = Good();
  server_.FromPeer({4711}, push, 1);
  server_.set_frame_view(4);  // A view that this server has not seen yet.
  server_.FromPeer(ServerHarness::WorkerPeer(0), push, 2);
  EXPECT_FALSE(server_.TakeReply<PushAck>(1).has_value());
  EXPECT_EQ(server_.Ack(2).code, Code::kUnavailable);
  EXPECT_EQ(server_.node().counters().dropped, 2u);

  server_.set_frame_view(2);
  server_.FromPeer(ServerHarness::WorkerPeer(0), push, 3);
  EXPECT_EQ(server_.Ack(3).code, Code::kStaleView);
  EXPECT_EQ(server_.node().counters().pushes, 0u);
}

// An answer costs far more than a damaged frame, which gets none.
TEST_F(Refusal, AFloodOfStrangersGetsFewAnswers) {
  const PullRequest pull = server_.PullOf(0, PullMode::kTrain, kRows);
  server_.replies().clear();
  server_.set_frame_view(4);  // All of them have to wait for it.
  const auto flood = [&] {
    for (uint64_t i = 0; i < 1000; ++i) server_.FromPeer({5000 + i % 300}, pull, 1);
    for (uint64_t i = 0; i < 1000; ++i) server_.FromPeer({5000 + i % 300}, Probe(), 1);
    const size_t answers = server_.replies().size();
    server_.replies().clear();
    return answers;
  };
  EXPECT_EQ(flood(), 16u);
  EXPECT_EQ(flood(), 0u);
  EXPECT_EQ(server_.node().counters().dropped, 4000u);
  server_.FromPeer(ServerHarness::WorkerPeer(0), pull, 2);
  const auto reply = server_.TakeReply<PullReply>(2);
  ASSERT_TRUE(reply.has_value()) << "a member is answered as ever";
  EXPECT_EQ(reply->code, Code::kUnavailable);
  server_.Tick();
  server_.replies().clear();
  EXPECT_EQ(flood(), 16u);
}

TEST_F(Refusal, RowsBeforeAnyView) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  ServerNodeOptions options;
  options.job = std::make_shared<const Job>(TestJob(Mode::kSync));
  options.identity.self = {100};
  ServerNode node(*files, *executor, options);
  node.OnFrame({1000}, EncodeMessage(Good()));
  EXPECT_EQ(node.counters().dropped, 1u);
  const Output output = node.TakeOutput();
  const auto answer = std::find_if(output.frames.begin(), output.frames.end(),
                                   [](const Outgoing& out) { return out.to == PeerId{1000}; });
  ASSERT_NE(answer, output.frames.end());
  PushAck ack;
  ASSERT_TRUE(DecodeMessage(answer->frame, &ack).ok());
  EXPECT_EQ(ack.code, Code::kUnavailable);
  EXPECT_FALSE(node.done());
}

// A request may wait for other workers, or for a disk: that is not silence.
TEST_F(Refusal, AProbeIsAnsweredWhateverTheServerIsAt) {
  LaterExecutor executor;
  ServerHarness server({.job = TestJob(Mode::kSync)}, nullptr, &executor);
  server.Pull(0, 5, PullMode::kTrain, kRows);
  Command load;
  load.id = {1};
  load.command = CommandKind::kLoad;
  server.FromPeer(kSchedulerPeer, load, 0);
  server.replies().clear();
  server.FromPeer(server.WorkerPeer(0), Probe(), 7);
  const std::vector<Outgoing>& replies = server.replies();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].to, server.WorkerPeer(0));
  EXPECT_EQ(replies[0].frame.header.kind, static_cast<uint16_t>(MessageKind::kProbeAck));
  EXPECT_EQ(replies[0].frame.header.sender, 100u);
  executor.RunAll();
}

// The scheduler that formed the first view died before this server saw it. The server has its
// initial rows, and no load will come.
TEST_F(Refusal, AServerThatMissedTheFirstViewHasItsRows) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  for (const uint64_t placed : {1, 2}) {
    ServerNodeOptions options;
    options.job = std::make_shared<const Job>(TestJob(Mode::kSync));
    options.identity.self = {100};
    ServerNode node(*files, *executor, options);
    View view = server_.view();
    view.view = {2};
    view.placed = {placed};
    node.OnFrame(kSchedulerPeer, EncodeMessage(view));
    Frame push = EncodeMessage(Good());
    push.header.view = 2;
    push.header.sender = server_.WorkerPeer(0).value;
    node.OnFrame(server_.WorkerPeer(0), push);
    const Output output = node.TakeOutput();
    const auto answer = std::ranges::find(output.frames, server_.WorkerPeer(0), &Outgoing::to);
    ASSERT_NE(answer, output.frames.end());
    PushAck ack;
    ASSERT_TRUE(DecodeMessage(answer->frame, &ack).ok());
    // Rows that moved here, or were loaded, are still to come.
    EXPECT_EQ(ack.code, placed == 1 ? Code::kOk : Code::kUnavailable) << ack.message;
  }
}

// A worker's clocks and sequences cannot cost the others a step: contradictions are refused, and a
// clock that no worker can have reached is ignored.
TEST_F(Refusal, PushesAndClocksThatCannotBeAreNotTaken) {
  ServerHarness server({.job = TestJob(Mode::kSync), .workers = 2});
  const auto code = [&](uint64_t push) { return server.TakeReply<PushAck>(push)->code; };
  for (const uint32_t worker : {0u, 1u}) {
    EXPECT_EQ(code(server.Push(worker, 0, 0, 1, kRows)), Code::kOk);
  }
  EXPECT_EQ(code(server.Push(0, 0, 0, 1, kRows)), Code::kOk) << "a repeat";
  EXPECT_EQ(code(server.Push(0, 7, 0, 1, kRows)), Code::kCorruption) << "of a step without it";
  EXPECT_EQ(code(server.Push(0, 0, 1, 1, kRows)), Code::kCorruption) << "a sequence of another";
  for (const Clock clock :
       {Clock{20}, (Clock{1} << 62) - 2, std::numeric_limits<Clock>::max() - 1}) {
    EXPECT_FALSE(server.TakeReply<AdvanceAck>(server.Advance(0, clock)).has_value()) << clock;
  }
  EXPECT_EQ(code(server.Push(1, 1, 1, 1, kRows)), Code::kOk);
  EXPECT_EQ(server.node().counters().steps, 1u) << "worker 0 has not pushed the second one";
  EXPECT_EQ(code(server.Push(0, 1, 1, 1, kRows)), Code::kOk);
  EXPECT_EQ(server.node().counters().steps, 2u);
}

TEST_F(Refusal, AWorkerThatLeavesIsForgottenAndItsPlaceTaken) {
  Job job = TestJob(Mode::kSync);
  ServerHarness server({.job = job, .workers = 2});
  server.Push(0, 0, 0, 1, kRows);
  server.Advance(0, 1);
  const uint64_t waiting = server.Pull(0, 1, PullMode::kTrain, kRows);
  EXPECT_FALSE(server.TakeReply<PullReply>(waiting).has_value());
  // Worker 1 leaves; then the step is complete without it.
  server.view().workers.pop_back();
  server.view().view = {4};
  server.SendView();
  EXPECT_TRUE(server.TakeReply<PullReply>(waiting).has_value());
  EXPECT_EQ(server.Read(0, {7})[0], -1);
}

// A sender of any bytes with valid checksums.
TEST_F(Refusal, DamagedRequestsNeverStopTheServer) {
  AdvanceRequest advance;
  advance.clock = 0;
  PullRequest listed = server_.PullOf(0, PullMode::kPrefetch, kRows);
  listed.list = 1;
  PullRequest named;
  named.mode = PullMode::kRefresh;
  named.list = 1;
  PushRequest named_push = Good();
  named_push.tables.clear();
  named_push.keys = Buffer();
  named_push.list = 1;
  const std::vector<Frame> frames = {EncodeMessage(Good()),
                                     EncodeMessage(server_.PullOf(0, PullMode::kTrain, kRows)),
                                     EncodeMessage(server_.PullOf(0, PullMode::kWithState, kRows)),
                                     EncodeMessage(server_.StoreOf(0, 0, kRows)),
                                     EncodeMessage(advance),
                                     EncodeMessage(listed),
                                     EncodeMessage(named),
                                     EncodeMessage(named_push)};
  Random random(1);
  for (int round = 0; round < 20000; ++round) {
    Frame frame = frames[random.Below(frames.size())];
    std::vector<Buffer*> parts = {&frame.envelope};
    for (Buffer& section : frame.sections) parts.push_back(&section);
    for (uint64_t flips = 1 + random.Below(3); flips-- > 0;) {
      Buffer& part = *parts[random.Below(parts.size())];
      if (part.empty()) continue;
      std::vector<std::byte> bytes(part.bytes().begin(), part.bytes().end());
      bytes[random.Below(bytes.size())] ^= static_cast<std::byte>(1u << random.Below(8));
      if (random.Below(10) == 0) bytes.resize(random.Below(bytes.size()));
      part = Buffer::CopyOf(bytes);
    }
    if (random.Below(20) == 0) frame.header.kind = static_cast<uint16_t>(random.Below(48));
    frame.header.view = 3;
    frame.header.request_id = 1;
    frame.header.sender = 1000;
    ChecksumFrame(frame);
    if (!CheckFrame(frame).ok()) continue;  // The transport drops it.
    server_.FromPeer(ServerHarness::WorkerPeer(0), frame);
    server_.replies().clear();
  }
  EXPECT_GT(server_.node().counters().dropped, 100u);
  EXPECT_GT(server_.node().counters().refused, 100u);
  EXPECT_GT(server_.node().counters().pulls, 100u);
  EXPECT_FALSE(server_.node().done());
}

}  // namespace
}  // namespace hdps
