// Tests both sides of a worker's channel; the node is a script on another thread.
#include "worker/exchange/node_channel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/platform/executor.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/view.h"

namespace hdps {
namespace {

// Answers the trainer's requests like a node, but at once.
class ScriptedNode : public ComputeRequests {
 public:
  explicit ScriptedNode(NodeChannel* channel) : channel_(channel) {}
  void Start(Ticket ticket, std::vector<ServerRequest> requests,
             std::vector<ServerRequest> /*then*/) override {
    started.push_back(requests.size());
    if (silent) return;
    channel_->OnReplies(ticket, Status(), std::vector<Frame>(requests.size()));
  }
  void Cancel(Ticket ticket) override {
    channel_->OnReplies(ticket, Status(Code::kCancelled, ""), {});
  }
  void Answer(const CommandDone& done) override { answers.push_back(done.id); }
  void Report(const Heartbeat& progress) override { clock = progress.clock; }
  void Put(const KvPut& put) override { board = put; }
  void Get(const KvGet& get) override {
    asked = get.key;
    if (get.key == board.key) channel_->OnKvValue({get.key, true, board.value});
  }
  void Fail(Status status) override { failure = std::move(status); }
  bool place_empty() const override { return turns_empty > 0 && turns_empty-- > 0; }

  bool silent = false;
  mutable std::atomic<int> turns_empty = 0;  // For so many turns more, a place is empty.
  std::vector<size_t> started;
  std::vector<CommandId> answers;
  Clock clock = 0;
  KvPut board;
  std::string asked;
  Status failure;

 private:
  NodeChannel* const channel_;
};

// The loop thread, which turns until stopped. Its clock advances a second per turn.
class LoopThread {
 public:
  LoopThread(NodeChannel* channel, ScriptedNode* node)
      : channel_(channel), thread_(StartThread("loop", [this, node] {
          for (TimeMs now = 0; !stop_; now += 1000) {
            channel_->OnTurn(*node, now);
            std::this_thread::yield();
          }
        })) {}
  ~LoopThread() {
    stop_ = true;
    thread_->Join();
  }

 private:
  NodeChannel* const channel_;
  std::atomic<bool> stop_ = false;
  std::unique_ptr<Thread> thread_;
};

Command CommandOf(CommandKind kind, uint64_t id) {
  Command command;
  command.command = kind;
  command.id = {id};
  return command;
}

TEST(NodeChannel, CallsWaitForTheirOwnReplies) {
  const auto clock = NewSystemClock();
  NodeChannel channel([] {}, *clock, 60000);
  ScriptedNode node(&channel);
  LoopThread loop(&channel, &node);
  const Ticket first = channel.Start(std::vector<ServerRequest>(1));
  const Ticket second = channel.Start(std::vector<ServerRequest>(2));
  const auto of_second = channel.Wait(second);
  const auto of_first = channel.Wait(first);
  ASSERT_TRUE(of_first.ok() && of_second.ok());
  EXPECT_EQ(of_first->size(), 1u);
  EXPECT_EQ(of_second->size(), 2u);
}

TEST(NodeChannel, CommandsWaitWhileAnAnswerIsWaitedFor) {
  const auto clock = NewSystemClock();
  NodeChannel channel([] {}, *clock, 60000);
  ScriptedNode node(&channel);
  channel.OnCommand(CommandOf(CommandKind::kTrain, 1));
  channel.OnCommand(CommandOf(CommandKind::kPause, 2));
  channel.OnCommand(CommandOf(CommandKind::kFinish, 3));
  LoopThread loop(&channel, &node);
  ASSERT_TRUE(channel.Call(std::vector<ServerRequest>(1)).ok());
  EXPECT_FALSE(channel.TakePause().has_value()) << "kTrain comes first";
  EXPECT_EQ(channel.NextCommand()->id, CommandId{1});
  EXPECT_EQ(channel.TakePause()->id, CommandId{2});
  EXPECT_FALSE(channel.TakePause().has_value());
  EXPECT_EQ(channel.NextCommand()->id, CommandId{3});
}

TEST(NodeChannel, TheBoardAnswersOrGivesUpByName) {
  const auto clock = NewSystemClock();
  NodeChannel channel([] {}, *clock, 60000);
  ScriptedNode node(&channel);
  LoopThread loop(&channel, &node);
  ASSERT_TRUE(channel.Put("a", "1").ok());
  const auto found = channel.Get("a");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, "1");
  const auto missing = channel.Get("nobody's");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), Code::kTimeout);
  EXPECT_NE(missing.status().message().find("nobody's"), std::string::npos);
}

// The first wait is ended by a view; its deadline passes before the second wait begins.
TEST(NodeChannel, TheDeadlineOfAWaitThatIsOverEndsNoOther) {
  const auto clock = NewSystemClock();
  NodeChannel channel([] {}, *clock, 60000);
  ScriptedNode node(&channel);
  const auto view_with = [](uint64_t number, uint64_t worker) {
    auto view = std::make_shared<View>();
    view->view = ViewId{number};
    view->workers.resize(1);
    view->workers[0].peer = PeerId{worker};
    return view;
  };
  const auto first = view_with(1, 100), second = view_with(2, 200), third = view_with(3, 300);
  channel.OnView(first, WorkerId{0});
  ASSERT_EQ(channel.WaitForView(), first);
  channel.OnView(second, WorkerId{0});
  EXPECT_TRUE(channel.AwaitInterruption(10'000, first.get()));
  // The deadline of 10 s passes, and nobody waits.
  for (TimeMs now = 0; now <= 20'000; now += 1000) channel.OnTurn(node, now);
  channel.OnView(third, WorkerId{0});
  EXPECT_TRUE(channel.AwaitInterruption(10'000, second.get()));
  EXPECT_EQ(channel.view(), third);
}

// A turn lasts a second.
TEST(NodeChannel, WaitsHaveNoEndWhileAPlaceIsEmpty) {
  const auto clock = NewSystemClock();
  ScriptedNode* told = nullptr;
  const auto begin = [&] {
    if (told != nullptr) told->turns_empty = 1000;
  };
  NodeChannel channel(begin, *clock, 60000);
  ScriptedNode node(&channel);
  LoopThread loop(&channel, &node);
  told = &node;
  EXPECT_FALSE(channel.AwaitInterruption(10'000));
  EXPECT_EQ(node.turns_empty, 0);
  EXPECT_EQ(channel.Get("nobody's").status().code(), Code::kTimeout);
  EXPECT_EQ(node.turns_empty, 0);
}

TEST(NodeChannel, ItsOwnStandstillIsNobodysDelay) {
  const auto clock = NewSystemClock();
  NodeChannel channel([] {}, *clock, 60000);
  ScriptedNode node(&channel);
  channel.OnTurn(node, 0);
  std::unique_ptr<Thread> thread;
  bool found = false;
  thread = StartThread("trainer", [&] { found = channel.Get("late").ok(); });
  while (node.asked.empty()) channel.OnTurn(node, 1000);
  channel.OnTurn(node, 100'000);  // It was stopped, and the answer has come meanwhile.
  channel.OnKvValue({"late", true, "1"});
  thread->Join();
  EXPECT_TRUE(found);
}

TEST(NodeChannel, AfterTheEndNothingWaits) {
  const auto clock = NewSystemClock();
  NodeChannel channel([] {}, *clock, 60000);
  ScriptedNode node(&channel);
  node.silent = true;
  const Ticket ticket = channel.Start(std::vector<ServerRequest>(1));
  channel.OnEnd(Status(Code::kUnavailable, "the scheduler is gone"));
  const auto replies = channel.Wait(ticket);
  ASSERT_FALSE(replies.ok());
  EXPECT_EQ(replies.status().code(), Code::kCancelled);
  EXPECT_NE(replies.status().message().find("scheduler is gone"), std::string::npos);
  EXPECT_FALSE(channel.NextCommand().has_value());
  EXPECT_EQ(channel.Get("key").status().code(), Code::kCancelled);
}

TEST(NodeChannel, ALoopThatIsGoneIsAnEnd) {
  const auto clock = NewSystemClock();
  NodeChannel channel([] {}, *clock, 60000);
  const Ticket ticket = channel.Start(std::vector<ServerRequest>(1));
  auto loop = StartThread("loop", [&] { channel.Close(); });
  EXPECT_EQ(channel.Wait(ticket).status().code(), Code::kCancelled);
  EXPECT_EQ(channel.WaitForView(), nullptr);
  loop->Join();
}

}  // namespace
}  // namespace hdps
