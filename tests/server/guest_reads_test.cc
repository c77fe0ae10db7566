// Tests reads of callers that are no members: rows as they are, nothing changed, or refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "common/job/spec/train_spec.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/view.h"
#include "tests/server/server_harness.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr PeerId kGuest{4711};

class GuestReads : public testing::Test {
 protected:
  explicit GuestReads(bool guests_read = true)
      : server_({.job = TestJob(Mode::kAsync), .workers = 2, .guests_read = guests_read}) {
    server_.Push(0, 0, 0, 1, {{1, 2, {4, 5}, {5, 6, 7, 8}}});
  }
  // Sends a read of keys of table 1, and returns the answer, if there is one.
  std::optional<PullReply> Ask(const std::vector<Key>& keys) {
    return Send(server_.PullOf(0, PullMode::kRead, {{1, 2, keys, {}}}));
  }
  std::optional<PullReply> Send(const PullRequest& pull) {
    server_.FromPeer(kGuest, pull, ++request_id_);
    return server_.TakeReply<PullReply>(request_id_);
  }

  ServerHarness server_;
  uint64_t request_id_ = 800;
};

TEST_F(GuestReads, RowsAsTheyAreAndNothingChanges) {
  const uint64_t before = server_.Digest();
  const auto row = [&](Key key) {
    const std::optional<PullReply> reply = Ask({key});
    EXPECT_TRUE(reply.has_value() && reply->code == Code::kOk) << key;
    const std::span<const float> weights = reply->rows.As<float>();
    EXPECT_EQ(std::vector<float>(weights.begin(), weights.end()), server_.Read(1, {key}));
    return std::vector<float>(weights.begin(), weights.end());
  };
  EXPECT_THAT(row(4), ElementsAre(-5, -6));
  EXPECT_THAT(row(99), ElementsAre(0, 0));
  EXPECT_EQ(server_.Digest(), before);
  EXPECT_EQ(server_.Run(CommandKind::kDigest).rows, 2u) << "a read makes no row";
}

// Only a member trains: it waits at the gate, names lists and sees the state of the optimizer.
TEST_F(GuestReads, NothingButReads) {
  for (const PullMode mode :
       {PullMode::kTrain, PullMode::kWithState, PullMode::kPrefetch, PullMode::kRefresh}) {
    PullRequest pull = server_.PullOf(0, PullMode::kRead, {{1, 2, {4}, {}}});
    pull.mode = mode;
    EXPECT_FALSE(Send(pull).has_value()) << static_cast<int>(mode);
  }
  const uint64_t before = server_.Digest();
  server_.replies().clear();
  server_.FromPeer(kGuest, server_.PushOf(0, 0, 1, {{1, 2, {4}, {1, 1}}}), 1);
  server_.FromPeer(kGuest, server_.StoreOf(0, 0, {{1, 2, {4}, {1, 1}}}), 2);
  EXPECT_TRUE(server_.replies().empty());
  EXPECT_EQ(server_.Digest(), before);
}

TEST_F(GuestReads, MistakesAreRefused) {
  PullRequest pull = server_.PullOf(0, PullMode::kRead, {{1, 2, {4}, {}}});
  pull.tables[0].table = {2};
  EXPECT_EQ(Send(pull)->code, Code::kCorruption);
  std::vector<Key> many(kGuestKeysMax + 1);
  std::iota(many.begin(), many.end(), Key{1});
  EXPECT_EQ(Ask(many)->code, Code::kResourceExhausted);
  many.pop_back();
  EXPECT_EQ(Ask(many)->code, Code::kOk);
  server_.set_frame_view(2);
  EXPECT_EQ(Ask({4})->code, Code::kStaleView);
  server_.set_frame_view(4);
  EXPECT_EQ(Ask({4})->code, Code::kUnavailable);
}

TEST_F(GuestReads, AFewFromTickToTick) {
  server_.Tick();
  int answers = 0;
  for (int i = 0; i < 100; ++i) answers += Ask({4}).has_value();
  EXPECT_EQ(answers, 16);
  server_.Tick();
  EXPECT_TRUE(Ask({4}).has_value());
}

struct NoGuests : GuestReads {
  NoGuests() : GuestReads(/*guests_read=*/false) {}
};

TEST_F(NoGuests, AreToldWhyTheyMayNotRead) {
  const std::optional<PullReply> reply = Ask({4});
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->code, Code::kInvalidArgument);
  EXPECT_THAT(reply->message, HasSubstr("hdps keygen"));
  EXPECT_TRUE(reply->rows.empty());
}

}  // namespace
}  // namespace hdps
