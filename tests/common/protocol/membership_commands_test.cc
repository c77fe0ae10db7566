// Tests commands and their answers, on the member's side.
#include "tests/common/protocol/membership_client_fixture.h"

namespace hdps {
namespace {

TEST_F(MembershipClientTest, CarriesOutACommandOnceAndRepeatsItsAnswer) {
  Form();
  Hear(CommandNumber(1));
  Hear(CommandNumber(1));
  EXPECT_THAT(TakenIds(), ElementsAre(1));
  Hear(CommandNumber(1));
  EXPECT_THAT(TakenIds(), IsEmpty());
  EXPECT_THAT(Said(), IsEmpty());
  client_.Answer(DoneNumber(1));
  client_.Answer(DoneNumber(1));
  EXPECT_THAT(Said(), ElementsAre("CommandDone 1"));
  Hear(CommandNumber(1));
  Hear(CommandNumber(1));
  EXPECT_THAT(TakenIds(), IsEmpty());
  EXPECT_THAT(Said(), ElementsAre("CommandDone 1", "CommandDone 1"));
}

TEST_F(MembershipClientTest, ACommandOfAnotherViewIsNotTaken) {
  Form();
  heard_view_ = 6;  // From an earlier scheduler.
  Hear(CommandNumber(1));
  heard_view_ = 8;  // It will be repeated, after its view.
  Hear(CommandNumber(2));
  EXPECT_THAT(TakenIds(), ElementsAre());
  Hear(ViewNumber(8));
  Hear(CommandNumber(2));
  EXPECT_THAT(TakenIds(), ElementsAre(2u));
}

TEST_F(MembershipClientTest, WhenTheJobGoesBackWaitingCommandsAreDropped) {
  Form();
  Hear(CommandNumber(1));
  View back = ViewNumber(8);
  ++back.restarts;
  Hear(back);
  EXPECT_THAT(TakenIds(), ElementsAre());
}

TEST_F(MembershipClientTest, CommandsComeInOrderAndLostOnesLater) {
  Form();
  Hear(CommandNumber(3));
  Hear(CommandNumber(2));
  EXPECT_THAT(TakenIds(), ElementsAre(2, 3));
  Hear(CommandNumber(1));
  EXPECT_THAT(TakenIds(), ElementsAre(1));
}

TEST_F(MembershipClientTest, ForgottenCommandsAreNeverCarriedOutAgain) {
  Form();
  for (uint64_t id = 1; id <= 200; ++id) {
    Hear(CommandNumber(id));
    EXPECT_THAT(TakenIds(), ElementsAre(id));
    client_.Answer(DoneNumber(id));
  }
  Said();
  for (uint64_t id = 1; id <= 200; ++id) Hear(CommandNumber(id));
  EXPECT_THAT(TakenIds(), IsEmpty());
  EXPECT_LE(Said().size(), 64u);
}

TEST_F(MembershipClientTest, ALongCommandOutlivesManyShortOnes) {
  Form();
  Hear(CommandNumber(1));
  for (uint64_t id = 2; id <= 200; ++id) {
    Hear(CommandNumber(id, CommandKind::kPause));
    client_.Answer(DoneNumber(id));
  }
  Said();
  client_.Answer(DoneNumber(1));
  EXPECT_THAT(Said(), ElementsAre("CommandDone 1"));
}

TEST_F(MembershipClientTest, OnlyTheNewestScoresAreKept) {
  Form();
  for (uint64_t id = 1; id <= 2; ++id) {
    Hear(CommandNumber(id, CommandKind::kEvaluate));
    CommandDone done = DoneNumber(id);
    done.scores = done.labels = FloatsOf(4);
    client_.Answer(done);
  }
  Said();
  Hear(CommandNumber(1, CommandKind::kEvaluate));
  EXPECT_THAT(Said(), IsEmpty());
  Hear(CommandNumber(2, CommandKind::kEvaluate));
  EXPECT_THAT(Said(), ElementsAre("CommandDone 2"));
  EXPECT_EQ(DecodedAs<CommandDone>(last_frame_).scores.size(), 16u);
}

TEST_F(MembershipClientTest, FinishIsAnsweredAFewTimesThenItIsOver) {
  Form();
  Hear(CommandNumber(1, CommandKind::kFinish));
  EXPECT_THAT(TakenIds(), ElementsAre(1));
  EXPECT_FALSE(client_.ended());
  client_.Answer(DoneNumber(1));
  TickUntil(1000);
  EXPECT_TRUE(client_.ended());
  EXPECT_EQ(client_.exit_status(), 0);
  EXPECT_THAT(Said(), testing::AllOf(testing::Each("CommandDone 1"), testing::SizeIs(5)));
  // A repeated request is answered again.
  Hear(CommandNumber(1, CommandKind::kFinish));
  EXPECT_THAT(Said(), ElementsAre("CommandDone 1"));
  // The scheduler's own end changes nothing any more.
  Hear(Abort{3, "late"});
  EXPECT_EQ(client_.exit_status(), 0);
}

}  // namespace
}  // namespace hdps
