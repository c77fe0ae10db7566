// Tests a step with train.clip_norm at one server: measured when every push has arrived, applied
// once when a worker sends the norm of all servers.
#include <cmath>

#include "common/job/spec/train_spec.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/row_messages.h"
#include "gtest/gtest.h"
#include "tests/server/server_harness.h"

namespace hdps {
namespace {

constexpr Key kKey = 5;

class ClipNormTest : public ::testing::Test {
 protected:
  static ServerSetting Setting() {
    ServerSetting setting{.job = TestJob(Mode::kSync)};
    setting.job.train.clip_norm = 2;
    return setting;
  }
  ClipNormTest() : server_(Setting()) {}

  // Pushes gradients of the two weights of a row of "deep", of one example.
  uint64_t Push(uint32_t worker, Clock clock, float a, float b) {
    return server_.Push(worker, static_cast<uint64_t>(clock), clock, 1, {{1, 2, {kKey}, {a, b}}});
  }
  uint64_t Ask(uint32_t worker, Clock clock) {
    SquaresRequest request;
    request.clock = clock;
    server_.FromPeer(ServerHarness::WorkerPeer(worker), request, ++request_);
    return request_;
  }
  std::optional<double> Squares(uint64_t request) {
    const std::optional<SquaresReply> reply = server_.TakeReply<SquaresReply>(request);
    if (!reply) return std::nullopt;
    EXPECT_EQ(reply->code, Code::kOk);
    return reply->squares.value();
  }
  void Advance(uint32_t worker, Clock clock, double squares) {
    AdvanceRequest advance;
    advance.clock = clock;
    advance.squares.Add(squares);
    server_.FromPeer(ServerHarness::WorkerPeer(worker), advance, ++request_);
    EXPECT_TRUE(server_.TakeReply<AdvanceAck>(request_).has_value());
  }
  std::vector<float> Row() { return server_.Read(1, {kKey}); }

  ServerHarness server_;
  uint64_t request_ = 1000000;
};

TEST_F(ClipNormTest, AStepWaitsForAllPushesThenForTheNorm) {
  Push(0, 0, 6, 0);
  const uint64_t first = Ask(0, 0);
  EXPECT_EQ(Squares(first), std::nullopt);
  Push(1, 0, 0, 8);
  // The mean of both workers' examples: (3, 4).
  EXPECT_EQ(Squares(first), 25.0);
  const uint64_t pull = server_.Pull(0, 1, PullMode::kTrain, {{1, 2, {kKey}, {}}});
  EXPECT_EQ(Row(), (std::vector<float>{0, 0}));
  EXPECT_FALSE(server_.TakeReply<PullReply>(pull).has_value());

  Advance(0, 1, 100);  // The norm of all servers is 10.
  const auto shrink = static_cast<float>(2 / (10 + 1e-6));
  EXPECT_EQ(Row(), (std::vector<float>{-3 * shrink, -4 * shrink}));
  EXPECT_TRUE(server_.TakeReply<PullReply>(pull).has_value());

  // The other worker asks late, or again, and gets the same: nothing is applied twice.
  EXPECT_EQ(Squares(Ask(1, 0)), 25.0);
  EXPECT_EQ(Squares(Ask(1, 0)), 25.0);
  Advance(1, 1, 100);
  Advance(0, 1, 100);
  EXPECT_EQ(Row(), (std::vector<float>{-3 * shrink, -4 * shrink}));
}

TEST_F(ClipNormTest, StepsFollowEachOther) {
  float row[2] = {0, 0};
  for (Clock step = 0; step < 4; ++step) {
    const float a = static_cast<float>(step + 1), b = 2;
    EXPECT_EQ(server_.Ack(Push(1, step, a, b)).code, Code::kOk);
    EXPECT_EQ(server_.Ack(Push(0, step, a, b)).code, Code::kOk);
    EXPECT_EQ(server_.Ack(Push(0, step, a, b)).code, Code::kOk);  // A repeat of the push.
    const double squares = *Squares(Ask(0, step));
    EXPECT_EQ(squares, a * a + b * b);
    Advance(1, step + 1, squares);
    const auto shrink = static_cast<float>(std::min(2 / (std::sqrt(squares) + 1e-6), 1.0));
    row[0] -= a * shrink;
    row[1] -= b * shrink;
    EXPECT_EQ(Row(), (std::vector<float>{row[0], row[1]}));
    EXPECT_EQ(Squares(Ask(1, step)), squares);
    Advance(0, step + 1, squares);
  }
}

// A process that takes a dead worker's place asks for the steps that this one has not announced.
TEST_F(ClipNormTest, TheSquaresOfTheLastTwoStepsAreKept) {
  double squares = 0;
  for (Clock step = 0; step < 3; ++step) {
    const auto a = static_cast<float>(step + 3);
    Push(0, step, a, 0);
    Push(1, step, a, 0);
    squares = *Squares(Ask(0, step));
    Advance(0, step + 1, squares);
  }
  EXPECT_EQ(squares, 25);
  EXPECT_EQ(Squares(Ask(1, 2)), 25);
  EXPECT_EQ(Squares(Ask(1, 1)), 16);
  const std::optional<SquaresReply> refused = server_.TakeReply<SquaresReply>(Ask(1, 0));
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->code, Code::kCorruption);
  EXPECT_NE(refused->message.find("step 0"), std::string::npos) << refused->message;
}

TEST_F(ClipNormTest, BelowTheNormNothingIsShrunk) {
  Push(0, 0, 1, 0.5f);
  Push(1, 0, 1, 0.5f);
  Advance(0, 1, *Squares(Ask(0, 0)));
  EXPECT_EQ(Row(), (std::vector<float>{-1, -0.5f}));
}

TEST_F(ClipNormTest, WhoHasNoExamplesStillBelongsToTheStep) {
  Push(0, 0, 3, 4);
  const uint64_t asked = Ask(0, 0);
  EXPECT_EQ(Squares(asked), std::nullopt);
  server_.Push(1, 0, 0, 0, {});
  EXPECT_EQ(Squares(asked), 25.0);
}

// The rows are the same, but the measured norm and the waiting requests are gone.
TEST_F(ClipNormTest, ALoadForgetsTheStepAtHand) {
  Push(0, 0, 6, 0);
  Push(1, 0, 0, 8);
  const uint64_t asked = Ask(0, 1);  // For a future step.
  EXPECT_EQ(server_.Run(CommandKind::kLoad, "", 0).code, Code::kOk);
  Advance(0, 1, 100);
  EXPECT_EQ(Row(), (std::vector<float>{0, 0}));
  EXPECT_EQ(Squares(asked), std::nullopt);
}

TEST_F(ClipNormTest, WithoutItNobodyIsAnsweredAndNothingWaits) {
  ServerHarness plain({.job = TestJob(Mode::kSync)});
  plain.Push(0, 0, 0, 1, {{1, 2, {kKey}, {6, 0}}});
  plain.Push(1, 0, 0, 1, {{1, 2, {kKey}, {0, 8}}});
  EXPECT_EQ(plain.Read(1, {kKey}), (std::vector<float>{-3, -4}));
  SquaresRequest request;
  plain.FromPeer(ServerHarness::WorkerPeer(0), request, 77);
  EXPECT_FALSE(plain.TakeReply<SquaresReply>(77).has_value());
}

}  // namespace
}  // namespace hdps
