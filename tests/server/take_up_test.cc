// Tests a server whose worker dies: the process that takes its place is told where the place
// stands, reads what the dead one had read, and what it pushes again is taken once.
#include <optional>
#include <vector>

#include "common/base/exit_status.h"
#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/places/kept_pulls.h"
#include "server/places/rank_stands.h"
#include "tests/server/server_harness.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;

constexpr PeerId kHeir{2000};
constexpr Key kKey = 7;

class TakeUpTest : public testing::Test {
 protected:
  void Begin(Mode mode, ServerSabotage sabotage = {},
             DenseExchange exchange = DenseExchange::kServers) {
    Job job = TestJob(mode);
    job.parallel.dense_exchange = exchange;
    server_.emplace(ServerSetting{.job = job, .sabotage = sabotage});
  }
  // Another process has the place of worker 0.
  void Replace() {
    ++server_->view().view.value;
    server_->view().workers[0].peer = kHeir;
    server_->SendView();
  }
  AdvanceAck Stand() {
    server_->FromPeer(kHeir, AdvanceRequest{.clock = 0, .asks = true}, ++id_);
    const std::optional<AdvanceAck> ack = server_->TakeReply<AdvanceAck>(id_);
    EXPECT_TRUE(ack.has_value());
    return ack.value_or(AdvanceAck());
  }
  uint64_t Push(uint32_t worker, uint64_t sequence, Clock clock, float gradient) {
    PushRequest push = server_->PushOf(sequence, clock, 1, {{0, 1, {kKey}, {gradient}}});
    push.counts = {.examples = static_cast<uint64_t>(10 * (clock + 1)), .loss_sum = 0.5};
    push.messages = {{4, 10 * clock, 10 * clock + 10}};
    server_->FromPeer(ServerHarness::WorkerPeer(worker), push, ++id_);
    return id_;
  }
  Code PushOfHeir(uint64_t sequence, Clock clock, float gradient) {
    server_->FromPeer(kHeir, server_->PushOf(sequence, clock, 1, {{0, 1, {kKey}, {gradient}}}),
                      ++id_);
    return server_->Ack(id_).code;
  }
  std::optional<float> PullOfHeir(Clock clock, PullMode mode = PullMode::kTrain) {
    server_->FromPeer(kHeir, server_->PullOf(clock, mode, {{0, 1, {kKey}, {}}}), ++id_);
    const std::optional<PullReply> reply = server_->TakeReply<PullReply>(id_);
    if (!reply || reply->code != Code::kOk) return std::nullopt;
    return reply->rows.As<float>()[0];
  }
  float Row() {
    server_->FromPeer(ServerHarness::WorkerPeer(1),
                      server_->PullOf(0, PullMode::kRead, {{0, 1, {kKey}, {}}}), ++id_);
    return server_->TakeReply<PullReply>(id_)->rows.As<float>()[0];
  }

  std::optional<ServerHarness> server_;
  uint64_t id_ = 5000;
};

TEST_F(TakeUpTest, InSyncTheHeirReadsWhatWasReadAndItsPushCountsOnce) {
  Begin(Mode::kSync);
  for (uint32_t w = 0; w < 2; ++w) {
    server_->Pull(w, 0, PullMode::kTrain, {{0, 1, {kKey}, {}}});
    Push(w, 0, 0, 2);
  }
  const float applied = Row();
  EXPECT_NE(applied, 0);  // The step was applied while worker 0 may have lacked its answer.
  Replace();
  const AdvanceAck stand = Stand();
  EXPECT_EQ(stand.clock, 0);
  EXPECT_EQ(stand.pushed, 1);
  EXPECT_EQ(stand.reached, 1);
  EXPECT_EQ(stand.counts.examples, 10u);
  // Another server lacks the push, so the heir makes the step again.
  EXPECT_EQ(PullOfHeir(0), 0);
  EXPECT_EQ(PullOfHeir(0, PullMode::kRefresh), 0);
  EXPECT_EQ(PushOfHeir(0, 0, 2), Code::kOk);
  EXPECT_EQ(Row(), applied);
  // The next step is its own.
  server_->FromPeer(kHeir, AdvanceRequest{.clock = 1}, ++id_);
  server_->Advance(1, 1);
  EXPECT_EQ(PullOfHeir(1), applied);
  Push(1, 1, 1, 2);
  EXPECT_EQ(PushOfHeir(1, 1, 2), Code::kOk);
  EXPECT_NE(Row(), applied);
}

TEST_F(TakeUpTest, RowsReadAheadAreKeptAsTheyWereAtTheStepsTurn) {
  Begin(Mode::kSync);
  const std::vector<TableRows> rows = {{0, 1, {kKey}, {}}};
  server_->Pull(0, 1, PullMode::kPrefetch, rows);  // Before step 0 is applied.
  for (uint32_t w = 0; w < 2; ++w) Push(w, 0, 0, 2);
  server_->Pull(0, 1, PullMode::kRefresh, rows);
  const float at_turn = Row();
  for (uint32_t w = 0; w < 2; ++w) Push(w, 1, 1, 4);
  ASSERT_NE(Row(), at_turn);
  Replace();
  EXPECT_EQ(Stand().pushed, 2);
  EXPECT_EQ(PullOfHeir(1), at_turn);
}

TEST_F(TakeUpTest, WithoutKeptRowsTheHeirReadsOthers) {
  Begin(Mode::kSync, {.heir_reads_anew = true});
  for (uint32_t w = 0; w < 2; ++w) {
    server_->Pull(w, 0, PullMode::kTrain, {{0, 1, {kKey}, {}}});
    Push(w, 0, 0, 2);
  }
  Replace();
  EXPECT_NE(PullOfHeir(0), 0);
}

// A server that was a backup has no answers kept when it becomes the primary. Its word is no
// mistake of the job, so all members can go back.
TEST_F(TakeUpTest, RowsOfAStepThatAreNowhereKeptAreRefusedWithARestart) {
  Begin(Mode::kSync, {}, DenseExchange::kAllreduce);
  for (uint32_t w = 0; w < 2; ++w) {
    Push(w, 0, 0, 2);
    server_->Advance(w, 1);
  }
  Replace();
  server_->FromPeer(kHeir, server_->PullOf(0, PullMode::kTrain, {{0, 1, {kKey}, {}}}), ++id_);
  const std::optional<PullReply> reply = server_->TakeReply<PullReply>(id_);
  ASSERT_TRUE(reply.has_value());
  EXPECT_TRUE(RestartMayHelp(reply->code)) << CodeName(reply->code) << ": " << reply->message;
  EXPECT_NE(reply->code, Code::kUnavailable) << "that is a worker which is being replaced";
  EXPECT_NE(reply->message.find("are not kept"), std::string::npos) << reply->message;
}

TEST_F(TakeUpTest, InAsyncAPushOfTheDeadCountsOnce) {
  for (const bool broken : {false, true}) {
    Begin(Mode::kAsync, {.heir_pushes_again = broken});
    Push(0, 0, 0, 1);
    Push(0, 1, 1, 1);
    server_->Advance(0, 1);
    Replace();
    const AdvanceAck stand = Stand();
    EXPECT_EQ(stand.clock, 1);
    EXPECT_EQ(stand.pushed, 2);
    EXPECT_EQ(stand.counts.examples, 20u);
    ASSERT_EQ(stand.steps.size(), 2u);
    EXPECT_EQ(stand.steps[1].clock, 1);
    EXPECT_THAT(stand.steps[1].messages, ElementsAre(PartitionSpan{4, 10, 20}));
    EXPECT_EQ(PushOfHeir(0, 1, 1), Code::kOk);
    EXPECT_EQ(Row(), broken ? -3 : -2);
    EXPECT_EQ(PushOfHeir(1, 2, 1), Code::kOk);
    EXPECT_EQ(Row(), broken ? -4 : -3);
  }
}

// Under allreduce worker 1 lives on and makes two steps again that it has announced: it reads what
// it had read, and what it pushes again is taken once, though it is the same process.
TEST_F(TakeUpTest, UnderAllreduceTheOthersMakeTheirStepsAgainToo) {
  Begin(Mode::kSync, {}, DenseExchange::kAllreduce);
  const std::vector<TableRows> rows = {{0, 1, {kKey}, {}}};
  const auto read = [&](Clock clock) -> std::optional<float> {
    const uint64_t id = server_->Pull(1, clock, PullMode::kTrain, rows);
    const std::optional<PullReply> reply = server_->TakeReply<PullReply>(id);
    if (!reply || reply->code != Code::kOk) return std::nullopt;
    return reply->rows.As<float>()[0];
  };
  std::vector<float> was;
  for (Clock clock = 0; clock < 4; ++clock) {
    was.push_back(read(clock).value_or(-1000));
    for (uint32_t w = 0; w < 2; ++w) {
      EXPECT_EQ(server_->Ack(Push(w, static_cast<uint64_t>(clock), clock, 2)).code, Code::kOk);
      server_->Advance(w, clock + 1);
    }
  }
  Replace();
  const float applied = Row();
  for (Clock clock = 2; clock < 4; ++clock) {
    EXPECT_EQ(read(clock), was[static_cast<size_t>(clock)]);
    EXPECT_EQ(server_->Ack(Push(1, static_cast<uint64_t>(clock) + 2, clock, 2)).code, Code::kOk);
  }
  EXPECT_EQ(Row(), applied);
  EXPECT_EQ(read(1), std::nullopt) << "it is not kept, and would not be what was read";
  server_->FromPeer(kHeir, AdvanceRequest{.clock = 3, .asks = true}, ++id_);
  EXPECT_EQ(server_->TakeReply<AdvanceAck>(id_)->counts.examples, 30u) << "before step 3";
}

TEST_F(TakeUpTest, AProcessThatWasReplacedChangesNothing) {
  Begin(Mode::kAsync);
  Replace();
  Push(0, 0, 0, 1);
  EXPECT_EQ(Row(), 0);
}

TEST(RankStands, AGapIsWhereThePlaceStands) {
  RankStands stands(8, /*parts=*/2);
  stands.Join({3}, 5);
  stands.Take({3}, {1}, 5, 1, {});
  stands.Take({3}, {1}, 5, 0, {.examples = 50});
  stands.Take({3}, {1}, 6, 1, {});
  stands.Take({3}, {1}, 7, 0, {.examples = 70});
  EXPECT_EQ(stands.pushed({3}), 6);
  EXPECT_EQ(stands.reached({3}), 8);
  EXPECT_EQ(stands.CountsBefore({3}, 6).examples, 50u);
  EXPECT_EQ(stands.TakenFrom({3}, 6, 1), PeerId{1});
  EXPECT_EQ(stands.TakenFrom({3}, 6, 0), std::nullopt);
  stands.Finish({3}, 6);
  EXPECT_EQ(stands.CountsBefore({3}, 6).examples, 50u);  // Of the step before.
  EXPECT_EQ(stands.pushed({3}), 6);
  stands.Reset(2);
  EXPECT_EQ(stands.pushed({3}), 2);
  EXPECT_EQ(stands.CountsBefore({3}, 2), RoundCounts());
}

TEST(RankStands, WhatTheNewestStepsHaveOfATopicIsKnown) {
  RankStands stands(8, /*parts=*/2);
  stands.Join({3}, 5);
  stands.Take({3}, {1}, 5, 0, {}, {{0, 10, 20}});
  stands.Take({3}, {1}, 5, 1, {}, {{0, 10, 20}});
  stands.Take({3}, {1}, 6, 1, {}, {{0, 20, 21}});  // The push that has the counts is missing.
  const auto clocks = [&] {
    std::vector<Clock> known;
    for (const TopicStep& step : stands.Steps({3})) known.push_back(step.clock);
    return known;
  };
  EXPECT_THAT(clocks(), ElementsAre(5, 6));
  EXPECT_THAT(stands.Steps({3})[1].messages, ElementsAre(PartitionSpan{0, 20, 21}));
  stands.Finish({3}, 6);
  EXPECT_THAT(clocks(), ElementsAre(5, 6)) << "where step 5 ended, step 6 begins";
  stands.Finish({3}, 7);
  EXPECT_THAT(clocks(), ElementsAre(6));
  stands.Reset(2);
  EXPECT_THAT(clocks(), ElementsAre());
}

TEST(RankStands, ALiarFillsNoMemory) {
  RankStands stands(4, 1);
  stands.Join({0}, 0);
  for (Clock clock = 0; clock < 2000; clock += 2) stands.Take({0}, {1}, clock, 0, {});
  EXPECT_EQ(stands.TakenFrom({0}, 0, 0), std::nullopt);
  EXPECT_EQ(stands.TakenFrom({0}, 1998, 0), PeerId{1});
  EXPECT_GE(stands.pushed({0}), 1990);
}

TEST(KeptPulls, TheFirstAnswerStaysUntilThePlaceHasFinishedTheStep) {
  const auto list = std::make_shared<KeyList>();
  list->keys = Buffer::CopyOf<Key>(std::vector<Key>{kKey});
  KeyList others;
  others.keys = Buffer::CopyOf<Key>(std::vector<Key>{kKey + 1});
  const auto rows = [](float value) { return Buffer::CopyOf<float>(std::vector<float>{value}); };
  KeptPulls kept(2);
  kept.Keep({0}, 4, 0, {{1}, list, DType::kFp32, rows(1)});
  kept.Keep({0}, 4, 0, {{1}, list, DType::kFp32, rows(2)});
  EXPECT_EQ(kept.Find({0}, 4, 0, others), nullptr);
  ASSERT_NE(kept.Find({0}, 4, 0, *list), nullptr);
  EXPECT_EQ(kept.Find({0}, 4, 0, *list)->rows.As<float>()[0], 1);
  kept.Finish({0}, 5);
  EXPECT_EQ(kept.Find({0}, 4, 0, *list), nullptr);
  for (Clock clock = 5; clock < 9; ++clock) {
    kept.Keep({0}, clock, 0, {{1}, list, DType::kFp32, rows(1)});
  }
  EXPECT_FALSE(kept.Has({0}, 6, 0));
  EXPECT_TRUE(kept.Has({0}, 8, 0));
}

}  // namespace
}  // namespace hdps
