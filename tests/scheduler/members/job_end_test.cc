// Tests how a job ends, and which members are told.
#include "scheduler/members/job_end.h"

#include <gtest/gtest.h>

namespace hdps {
namespace {

TEST(JobEnd, AJobThatIsLeftSendsAbortFiveTimesAndIsDone) {
  JobEnd end;
  EXPECT_FALSE(end.over());
  EXPECT_EQ(end.last_word().exit_status, 0);
  ASSERT_TRUE(end.Leave(3, "no server is left"));
  int told = 0;
  while (!end.done()) {
    EXPECT_TRUE(end.leaving());
    EXPECT_EQ(end.TakeAbort().message, "no server is left");
    ASSERT_LE(++told, 5);
  }
  EXPECT_EQ(told, 5);
  EXPECT_EQ(end.last_word().exit_status, 3);
}

TEST(JobEnd, TheFirstEndCounts) {
  JobEnd end;
  ASSERT_TRUE(end.Leave(2, "first"));
  EXPECT_FALSE(end.Leave(3, "second"));
  EXPECT_EQ(end.last_word().message, "first");
  JobEnd finished;
  finished.Finish("the job is finished");
  EXPECT_TRUE(finished.done());
  EXPECT_FALSE(finished.leaving());
  EXPECT_FALSE(finished.Leave(3, "second"));
  EXPECT_EQ(finished.last_word().exit_status, 0);
}

TEST(JobEnd, AStopIsTakenOnceAndNotAfterTheEnd) {
  JobEnd end;
  EXPECT_TRUE(end.TakeStop());
  EXPECT_FALSE(end.TakeStop());
  EXPECT_TRUE(end.stop_asked());
  JobEnd over;
  ASSERT_TRUE(over.Leave(3, "lost"));
  EXPECT_FALSE(over.TakeStop());
}

TEST(JobEnd, WhoeverHasMissedTheEndIsToldWhenHeSpeaks) {
  JobEnd end;
  EXPECT_FALSE(end.AnswerTo(MessageKind::kHeartbeat));
  ASSERT_TRUE(end.Leave(3, "lost"));
  EXPECT_EQ(end.AnswerTo(MessageKind::kHeartbeat)->exit_status, 3);
  EXPECT_EQ(end.AnswerTo(MessageKind::kJoinRequest)->message, "lost");
  EXPECT_FALSE(end.AnswerTo(MessageKind::kCommandDone));
  // Members of a finished job know its end; a process that never got a place does not.
  JobEnd finished;
  finished.Finish("done");
  EXPECT_FALSE(finished.AnswerTo(MessageKind::kHeartbeat));
  EXPECT_EQ(finished.AnswerTo(MessageKind::kJoinRequest)->exit_status, 0);
}

}  // namespace
}  // namespace hdps
