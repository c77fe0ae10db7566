// Tests rows that move ahead: copies go out in rounds, and only the last changes are left.
#include "scheduler/phases/move_ahead.h"

#include "tests/scheduler/phases/phase_fixture.h"

namespace hdps {
namespace {

class MoveAheadTest : public PhaseTest {
 protected:
  MoveAheadTest() {
    next_ = ViewOf({{0}, {1}, {1}, {1}});  // Shard 1 goes from the first server to the second.
    next_.view = next_.placed = {2};
  }
  // Answers the last command that was sent.
  std::string Answered(const CommandDone& done) {
    const Orders::Sent sent = orders_.sent.back();
    return ahead_.OnAnswer({sent.to, sent.command, done}, orders_);
  }
  static CommandDone Copied(Clock clock, uint64_t bytes, const char* name = "shard_001.snapshot") {
    CommandDone done;
    done.clock = clock;
    done.files = {{.name = name, .bytes = bytes, .rows = bytes / 10}};
    return done;
  }
  const Command& last() const { return orders_.sent.back().command; }

  View next_;
  MoveAhead ahead_{parts_};
};

TEST_F(MoveAheadTest, AllRowsGoOutAndThenWhatChanged) {
  EXPECT_EQ(ahead_.Begin(next_, orders_), "");
  EXPECT_EQ(told(), "11: save_ahead");
  EXPECT_EQ(last().shards, std::vector<ShardId>{{1}});
  EXPECT_EQ(last().since, 0);
  EXPECT_EQ(Answered(Copied(7, 1000)), "");
  EXPECT_EQ(told(), "12: load_ahead 7");
  EXPECT_EQ(last().files.size(), 1u);
  EXPECT_EQ(Answered({}), "");
  EXPECT_FALSE(ahead_.ready());
  EXPECT_EQ(told(), "11: save_ahead");
  EXPECT_EQ(last().since, 7);
  EXPECT_EQ(Answered(Copied(9, 50, "shard_001.delta")), "");
  EXPECT_EQ(told(), "12: load_ahead 9");
  EXPECT_EQ(last().since, 7);
  EXPECT_EQ(Answered({}), "");
  ASSERT_TRUE(ahead_.ready());
  const MoveAhead::Ready ready = ahead_.Take();
  EXPECT_EQ(ready.view.view, next_.view);
  EXPECT_EQ(ready.copies.since.at(kServers[0]), 9);
  EXPECT_EQ(ready.copies.bytes, 1000u);
  EXPECT_FALSE(ahead_.under_way());
}

TEST_F(MoveAheadTest, AsLongAsMuchChangesThereIsAnotherRound) {
  ASSERT_EQ(ahead_.Begin(next_, orders_), "");
  uint64_t bytes = uint64_t{1} << 30;
  for (Clock round = 0; round < 8; ++round) {
    EXPECT_FALSE(ahead_.ready());
    EXPECT_EQ(last().command, CommandKind::kSaveAhead);
    EXPECT_EQ(Answered(Copied(10 + round, bytes)), "");
    EXPECT_EQ(Answered({}), "");
    bytes = bytes / 10 * 7;
  }
  EXPECT_TRUE(ahead_.ready());
}

TEST_F(MoveAheadTest, WhereRowsChangeAsFastAsTheyAreSentThereAreTwoRounds) {
  ASSERT_EQ(ahead_.Begin(next_, orders_), "");
  for (Clock round = 0; round < 2; ++round) {
    EXPECT_FALSE(ahead_.ready());
    EXPECT_EQ(Answered(Copied(10 + round, uint64_t{1} << 30)), "");
    EXPECT_EQ(Answered({}), "");
  }
  EXPECT_TRUE(ahead_.ready());
}

TEST_F(MoveAheadTest, WithoutAStepMeanwhileNothingIsRead) {
  ASSERT_EQ(ahead_.Begin(next_, orders_), "");
  Answered(Copied(7, 1000));
  Answered({});
  CommandDone same;
  same.clock = 7;
  EXPECT_EQ(Answered(same), "");
  EXPECT_EQ(last().command, CommandKind::kSaveAhead);
  EXPECT_TRUE(ahead_.ready());
  EXPECT_EQ(ahead_.Take().copies.since.at(kServers[0]), 7);
}

TEST_F(MoveAheadTest, AFaultIsNamedAndADropReachesWhoHasCopies) {
  ASSERT_EQ(ahead_.Begin(next_, orders_), "");
  CommandDone full;
  full.code = Code::kIoError;
  full.message = "no space left";
  EXPECT_EQ(Answered(full), "server 0 (host): no space left");
  ahead_.Drop(orders_);
  EXPECT_EQ(told(), "11: save_ahead, 12: load_ahead");
  EXPECT_FALSE(ahead_.under_way());
  const Orders::Sent drop = orders_.sent.back();
  // Its answer is none to the move that follows.
  ASSERT_EQ(ahead_.Begin(next_, orders_), "");
  EXPECT_EQ(ahead_.OnAnswer({drop.to, drop.command, {}}, orders_), "");
  EXPECT_EQ(Answered(Copied(7, 1000)), "");
  EXPECT_EQ(last().command, CommandKind::kLoadAhead);
}

}  // namespace
}  // namespace hdps
