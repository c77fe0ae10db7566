// Tests the loop with a toy node, an in-process transport and a settable clock.
#include "common/net/node_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/message_kind.h"
#include "common/protocol/row_messages.h"

namespace hdps {
namespace {

constexpr PeerId kSelf{1};
constexpr PeerId kOther{2};

// A clock that advances one millisecond at each call.
class SteppingClock : public MonotonicClock {
 public:
  int64_t NowMs() override { return ++now_ms_; }
  int64_t NowNs() override { return NowMs() * 1000000; }

 private:
  int64_t now_ms_ = 0;
};

// Echoes frames to kOther, records what happens, and is done after some ticks.
class ToyNode : public Node {
 public:
  explicit ToyNode(int ticks) : ticks_left_(ticks) {
    output_.dials.push_back({kOther, "inproc://other"});
    output_.frames.push_back({kOther, EncodeMessage(AdvanceRequest{1000})});
  }
  void OnFrame(PeerId from, Frame frame) override {
    EXPECT_EQ(from, kOther);
    EXPECT_TRUE(CheckFrame(frame).ok());
    AdvanceRequest request;
    ASSERT_TRUE(DecodeMessage(frame, &request).ok());
    trace_ += "f" + std::to_string(request.clock) + " ";
    output_.frames.push_back({from, std::move(frame)});
  }
  void OnTick(TimeMs now) override {
    EXPECT_GE(now, last_tick_);
    last_tick_ = now;
    trace_ += "t ";
    --ticks_left_;
  }
  Output TakeOutput() override { return std::exchange(output_, Output()); }
  void RequestStop(const std::string& reason) override { trace_ += "stop:" + reason + " "; }
  bool done() const override { return ticks_left_ <= 0; }
  int exit_status() const override { return 3; }
  const std::string& exit_reason() const override { return trace_; }

 private:
  int ticks_left_;
  TimeMs last_tick_ = 0;
  std::string trace_;
  Output output_;
};

class NodeLoopTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(other_->Listen("inproc://other").ok()); }
  static TransportOptions OptionsFor(PeerId self) {
    TransportOptions options;
    options.self = self;
    return options;
  }
  void SendFromOther(Clock number) { other_->Send(kSelf, EncodeMessage(AdvanceRequest{number})); }
  std::vector<Clock> TakeAtOther() {
    std::vector<Clock> clocks;
    PeerId from;
    Frame frame;
    while (other_->Receive(0, &from, &frame)) {
      AdvanceRequest request;
      EXPECT_TRUE(DecodeMessage(frame, &request).ok());
      clocks.push_back(request.clock);
    }
    return clocks;
  }

  std::shared_ptr<InprocHub> hub_ = NewInprocHub();
  std::unique_ptr<Transport> transport_ = NewInprocTransport(hub_, OptionsFor(kSelf));
  std::unique_ptr<Transport> other_ = NewInprocTransport(hub_, OptionsFor(kOther));
  SteppingClock clock_;
};

TEST_F(NodeLoopTest, DialsSendsFeedsAndGivesTheExitStatus) {
  ASSERT_TRUE(transport_->Listen("inproc://self").ok());
  ASSERT_TRUE(other_->Connect(kSelf, "inproc://self").ok());
  for (Clock i = 0; i < 3; ++i) SendFromOther(i);
  ToyNode node(2);
  NodeLoopOptions options;
  options.tick_ms = 10;
  options.drain_ms = 3;
  int turns = 0;
  options.on_turn = [&turns] { ++turns; };
  const ProcessEnd end = RunNodeLoop(node, *transport_, clock_, options);
  EXPECT_EQ(end.status, 3);
  EXPECT_EQ(end.reason, node.exit_reason());
  EXPECT_GE(turns, 2);
  EXPECT_THAT(node.exit_reason(), testing::StartsWith("t f0 f1 f2 t "));
  EXPECT_THAT(TakeAtOther(), testing::ElementsAre(1000, 0, 1, 2));
}

// A node that records what its peer has received by the time the next frame is taken.
class ListeningNode : public ToyNode {
 public:
  ListeningNode(int ticks, std::function<size_t()> heard)
      : ToyNode(ticks), heard_(std::move(heard)) {}
  void OnFrame(PeerId from, Frame frame) override {
    answers_heard_.push_back(heard_());
    ToyNode::OnFrame(from, std::move(frame));
  }
  const std::vector<size_t>& answers_heard() const { return answers_heard_; }

 private:
  const std::function<size_t()> heard_;
  std::vector<size_t> answers_heard_;
};

TEST_F(NodeLoopTest, AnswersOneFrameBeforeItTakesTheNext) {
  ASSERT_TRUE(transport_->Listen("inproc://self").ok());
  ASSERT_TRUE(other_->Connect(kSelf, "inproc://self").ok());
  for (Clock i = 0; i < 3; ++i) SendFromOther(i);
  size_t heard = 0;
  ListeningNode node(2, [&] { return heard += TakeAtOther().size(); });
  NodeLoopOptions options;
  options.tick_ms = 10;
  options.drain_ms = 3;
  RunNodeLoop(node, *transport_, clock_, options);
  EXPECT_THAT(node.answers_heard(),
              testing::ElementsAre(1, 2, 3));  // The first message, then replies.
}

TEST_F(NodeLoopTest, AFloodDoesNotStopTheTicks) {
  ASSERT_TRUE(transport_->Listen("inproc://self").ok());
  ASSERT_TRUE(other_->Connect(kSelf, "inproc://self").ok());
  for (Clock i = 0; i < 300; ++i) SendFromOther(i);
  ToyNode node(4);
  NodeLoopOptions options;
  options.tick_ms = 10;
  options.drain_ms = 0;
  RunNodeLoop(node, *transport_, clock_, options);
  // Between two ticks there are as many frames as time allows.
  int frames = 0, frames_max = 0;
  for (const char c : node.exit_reason()) {
    if (c == 't') frames = 0;
    if (c == 'f') frames_max = std::max(frames_max, ++frames);
  }
  EXPECT_LE(frames_max, 10);
  EXPECT_GT(frames_max, 5);
}

// Fails to connect for a while.
class DeafTransport : public Transport {
 public:
  DeafTransport(Transport& through, MonotonicClock& clock, TimeMs deaf_until)
      : through_(through), clock_(clock), deaf_until_(deaf_until) {}
  Result<std::string> Listen(const std::string& address) override {
    return through_.Listen(address);
  }
  Status Connect(PeerId peer, const std::string& address) override {
    attempts_.push_back(clock_.NowMs());
    if (attempts_.back() < deaf_until_) return Status(Code::kIoError, "no more descriptors");
    return through_.Connect(peer, address);
  }
  void HangUp(PeerId peer) override { through_.HangUp(peer); }
  void Send(PeerId to, Frame frame) override { through_.Send(to, std::move(frame)); }
  bool Receive(int64_t timeout_ms, PeerId* from, Frame* frame) override {
    return through_.Receive(timeout_ms > 0 ? 1 : 0, from, frame);
  }
  void Wake() override { through_.Wake(); }
  TransportCounters counters() const override { return through_.counters(); }
  const std::vector<TimeMs>& attempts() const { return attempts_; }

 private:
  Transport& through_;
  MonotonicClock& clock_;
  const TimeMs deaf_until_;
  std::vector<TimeMs> attempts_;
};

TEST_F(NodeLoopTest, ADialThatFailedIsTriedAgainLessAndLessOften) {
  DeafTransport deaf(*transport_, clock_, 1000);
  ToyNode node(200);
  NodeLoopOptions options;
  options.tick_ms = 10;
  options.drain_ms = 3;
  RunNodeLoop(node, deaf, clock_, options);
  // After 100, 200, 400 and 800 ms, each at the next tick; then it succeeded.
  ASSERT_EQ(deaf.attempts().size(), 5u);
  for (size_t i = 1; i < 5; ++i) {
    const TimeMs waited = deaf.attempts()[i] - deaf.attempts()[i - 1];
    EXPECT_GE(waited, 50 << i);
    EXPECT_LE(waited, (50 << i) + 25);
  }
}

TEST_F(NodeLoopTest, AsksTheNodeToStopOnce) {
  ToyNode node(3);
  NodeLoopOptions options;
  options.tick_ms = 1;
  options.drain_ms = 0;
  std::atomic<bool> stop = false;
  options.stop = &stop;
  options.stop_reason = "SIGTERM";
  int turns = 0;
  options.on_turn = [&] { stop = ++turns > 1; };
  RunNodeLoop(node, *transport_, clock_, options);
  EXPECT_EQ(node.exit_reason(), "t stop:SIGTERM t t ");
}

// Sends the results of a background thread.
class WorkingNode : public ToyNode {
 public:
  using ToyNode::ToyNode;
  void RequestStop(const std::string&) override { stopped_ = true; }
  bool done() const override { return stopped_; }
  Output TakeOutput() override {
    Output output = ToyNode::TakeOutput();
    if (result_.exchange(false)) output.frames.push_back({kOther, EncodeMessage(AdvanceAck{5})});
    return output;
  }
  void Finish() { result_ = true; }

 private:
  std::atomic<bool> result_ = false;
  bool stopped_ = false;
};

TEST_F(NodeLoopTest, AnEndFromOutsideIsAtOnceAndWithoutAnotherFrame) {
  ToyNode node(1000);
  NodeLoopOptions options;
  options.end_now = [] { return std::optional<ProcessEnd>({7, "no longer wanted"}); };
  const ProcessEnd end = RunNodeLoop(node, *transport_, clock_, options);
  EXPECT_EQ(end.status, 7);
  EXPECT_EQ(end.reason, "no longer wanted");
  EXPECT_THAT(TakeAtOther(), testing::IsEmpty());
}

TEST_F(NodeLoopTest, WorkThatEndsElsewhereWakesIt) {
  ASSERT_TRUE(transport_->Listen("inproc://self").ok());
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  WorkingNode node(2);
  NodeLoopOptions options;
  options.tick_ms = 600'000;  // No tick can help.
  options.drain_ms = 0;
  std::atomic<bool> stop = false;
  options.stop = &stop;
  const std::unique_ptr<Thread> loop =
      StartThread("loop", [&] { RunNodeLoop(node, *transport_, *clock, options); });
  PeerId from;
  Frame frame;
  // The node's first message; then it waits.
  while (!other_->Receive(60'000, &from, &frame)) {
  }
  node.Finish();
  transport_->Wake();
  while (!other_->Receive(60'000, &from, &frame)) {
  }
  EXPECT_EQ(frame.header.kind, static_cast<uint16_t>(MessageKind::kAdvanceAck));
  stop = true;
  transport_->Wake();
  loop->Join();
}

TEST_F(NodeLoopTest, AnswersWhileItDrains) {
  ASSERT_TRUE(transport_->Listen("inproc://self").ok());
  ASSERT_TRUE(other_->Connect(kSelf, "inproc://self").ok());
  ToyNode node(1);
  NodeLoopOptions options;
  options.tick_ms = 1;
  options.drain_ms = 20;
  int turns = 0;
  options.on_turn = [&] {
    if (++turns == 3) SendFromOther(7);  // The node was done two turns ago.
  };
  RunNodeLoop(node, *transport_, clock_, options);
  EXPECT_THAT(TakeAtOther(), testing::ElementsAre(1000, 7));
}

}  // namespace
}  // namespace hdps
