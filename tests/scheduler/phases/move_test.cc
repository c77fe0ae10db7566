// Tests moves of shards to another server: the job continues at its step, or all stays as it was.
#include "scheduler/phases/move.h"

#include "common/job/job_spec.h"
#include "tests/scheduler/phases/phase_fixture.h"

namespace hdps {
namespace {

using What = Next::What;

class MovePhaseTest : public PhaseTest {
 protected:
  MovePhaseTest() {
    job_.plan.emplace(*spec_, JobPosition{5, 0, 0}, JobPlan::Past());
    job_.quiet_wanted = true;
    next_ = ViewOf({{0}, {1}, {1}, {1}});  // Shard 1 goes from the first server to the second.
    next_.view = next_.placed = {2};
  }
  View next_;
};

TEST_F(MovePhaseTest, RowsAreSavedTheViewChangesAndEverybodyTakesUp) {
  MovePhase move(parts_, next_, now_);
  ASSERT_EQ(move.first(), JobPhase::kMoveSave);
  Begin(move);
  EXPECT_EQ(told(), "11: save 5");
  EXPECT_EQ(orders_.sent.back().command.shards, std::vector<ShardId>{{1}});
  CommandDone saved;
  saved.files = {{.name = "shard_1", .bytes = 7, .rows = 3}};
  Done(move, kServers[0], saved);
  EXPECT_FALSE(orders_.view);
  EXPECT_EQ(AllAnswered(move).phase, JobPhase::kMoveServers);
  ASSERT_TRUE(orders_.view);
  EXPECT_EQ(orders_.view->view, next_.view);
  Begin(move);
  EXPECT_EQ(told(), "11: load 5, 12: load 5");
  EXPECT_EQ(orders_.sent.back().command.files.size(), 1u);
  EXPECT_EQ(AllAnswered(move).phase, JobPhase::kMoveWorkers);
  Begin(move);
  EXPECT_EQ(told(), "21: load 5, 22: load 5");
  EXPECT_EQ(AllAnswered(move).what, What::kDone);
  EXPECT_FALSE(job_.quiet_wanted);
  EXPECT_FALSE(files_->Exists("out/checkpoint/moves_of_view_2"));
}

TEST_F(MovePhaseTest, OfRowsThatHaveComeAheadOnlyChangesAreAskedFor) {
  MovePhase move(parts_, next_, now_, {.since = {{kServers[0], 4}}, .rows = 30, .bytes = 300});
  Begin(move);
  EXPECT_EQ(orders_.sent.back().command.since, 4);
  CommandDone saved;
  saved.files = {{.name = "shard_001.delta", .bytes = 7, .rows = 3}};
  Done(move, kServers[0], saved);
  for (int stage = 0; stage < 2; ++stage) {
    AllAnswered(move);
    Begin(move);
  }
  EXPECT_EQ(AllAnswered(move).what, What::kDone);
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_NE(said_[0].find("(30 rows)"), std::string::npos) << said_[0];
  EXPECT_NE(said_[0].find("300 bytes had come before, 7 came now"), std::string::npos) << said_[0];
}

TEST_F(MovePhaseTest, BeforeTheViewChangesAFaultLeavesAllAsItWas) {
  MovePhase move(parts_, next_, now_);
  Begin(move);
  EXPECT_TRUE(Refuses(move, kServers[0], Code::kIoError, "no space left"));
  EXPECT_EQ(AllAnswered(move).what, What::kDone);
  EXPECT_FALSE(orders_.view);
  EXPECT_EQ(told(), "11: save 5");  // Nobody has copies.
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0],
            "warning: the members of the job could not change: server 0 (host): no space left");
}

TEST_F(MovePhaseTest, AFaultThereLetsCopiesGoThatHaveComeAhead) {
  MovePhase move(parts_, next_, now_, {.since = {{kServers[0], 4}}, .rows = 30, .bytes = 300});
  Begin(move);
  EXPECT_EQ(told(), "11: save 5");
  EXPECT_TRUE(Refuses(move, kServers[0], Code::kIoError, "no space left"));
  EXPECT_EQ(AllAnswered(move).what, What::kDone);
  EXPECT_EQ(told(), "12: load_ahead");
  EXPECT_TRUE(orders_.sent.back().command.shards.empty());
}

TEST_F(MovePhaseTest, BehindThatItTakesTheJobBack) {
  MovePhase move(parts_, next_, now_);
  Begin(move);
  Done(move, kServers[0]);
  AllAnswered(move);
  orders_.sent.clear();
  Begin(move);
  EXPECT_TRUE(Refuses(move, kServers[1], Code::kCorruption, "torn"));
  EXPECT_EQ(AllAnswered(move).what, What::kGoBack);
}

}  // namespace
}  // namespace hdps
