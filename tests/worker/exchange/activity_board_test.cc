// Tests the activity that a worker's compute side reports.
#include "worker/exchange/activity_board.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/common/platform/settable_clock.h"
#include "worker/data/watched_files.h"

namespace hdps {
namespace {

class ActivityBoardTest : public testing::Test {
 protected:
  void Expect(const std::string& stage, WaitReason reason, int64_t for_ms,
              const std::string& subject = "") {
    const Activity now = board_.Now();
    EXPECT_EQ(now.stage, stage);
    EXPECT_EQ(now.wait_reason, reason);
    EXPECT_EQ(now.for_ms, for_ms);
    EXPECT_EQ(now.subject, subject);
  }
  void Later(int64_t ms) { clock_.now_ms += ms; }

  SettableClock clock_;
  ActivityBoard board_{clock_};
};

TEST_F(ActivityBoardTest, AStageAndTheWaitWithinIt) {
  board_.Enter("pull");
  Later(5);
  Expect("pull", WaitReason::kNone, 5);
  {
    const ActivityBoard::Waiting outer(&board_, WaitReason::kMembers);
    Later(30);
    {
      const ActivityBoard::Waiting same(&board_, WaitReason::kMembers);
      Later(10);
      Expect("pull", WaitReason::kMembers, 40);  // One wait, in several pieces.
    }
    const ActivityBoard::Waiting other(&board_, WaitReason::kGroup);
    Later(7);
    Expect("pull", WaitReason::kGroup, 7);
  }
  Expect("pull", WaitReason::kNone, 52);
  board_.Enter("evaluate", "second set");
  Expect("evaluate", WaitReason::kNone, 0, "second set");
  const ActivityBoard::Waiting nowhere(nullptr, WaitReason::kData);
}

TEST_F(ActivityBoardTest, CallsOfCollectives) {
  board_.Enter(ActivityBoard::kCompute);
  board_.calls()->CallBegun();  // Called by a queue, beside the computation.
  Later(20);
  Expect(ActivityBoard::kCompute, WaitReason::kNone, 20);
  board_.lane_calls()->CallBegun();  // A part of computing.
  Later(3);
  Expect(ActivityBoard::kCompute, WaitReason::kGroup, 3);
  board_.lane_calls()->CallEnded();
  board_.Enter("reduce_dense");
  Later(4);
  Expect("reduce_dense", WaitReason::kGroup, 27);
  board_.calls()->CallEnded();
  Expect("reduce_dense", WaitReason::kNone, 4);
}

TEST_F(ActivityBoardTest, TheFileThatIsAskedFor) {
  const std::unique_ptr<FileSystem> disk = NewMemoryFileSystem();
  WatchedFiles files(*disk, [this](const std::string& path) { board_.Opened(path); });
  ASSERT_TRUE(WriteFileAtomically(files, "a", std::string("x")).ok());
  board_.Enter("read");
  const ActivityBoard::Waiting waiting(&board_, WaitReason::kData);
  EXPECT_TRUE(files.OpenSequential("a").ok());
  Expect("read", WaitReason::kData, 0, "a");
  EXPECT_FALSE(files.Exists("b"));
  Expect("read", WaitReason::kData, 0, "b");
  EXPECT_FALSE(files.FileSize("c").ok());
  Expect("read", WaitReason::kData, 0, "c");
}

TEST_F(ActivityBoardTest, TroubleIsKeptUntilItEnds) {
  EXPECT_EQ(board_.trouble(), "");
  board_.SetTrouble("a broker is away");
  EXPECT_EQ(board_.trouble(), "a broker is away");
  board_.SetTrouble("");
  EXPECT_EQ(board_.trouble(), "");
}

TEST_F(ActivityBoardTest, RowsThatAreAwaitedAreToldWhileTheTrainerWaitsForData) {
  board_.Enter("read");
  EXPECT_EQ(board_.AwaitRows("log:7"), 0);
  Later(30);
  EXPECT_EQ(board_.AwaitRows("log:7"), 30);
  Expect("read", WaitReason::kNone, 30);  // It has other steps to do.
  {
    const ActivityBoard::Waiting waiting(&board_, WaitReason::kData);
    Expect("read", WaitReason::kRows, 30, "log:7");
    board_.AwaitRows("log:9");
    Expect("read", WaitReason::kRows, 0, "log:9");
    EXPECT_EQ(board_.AwaitRows(""), 0);
    Later(5);
    Expect("read", WaitReason::kData, 5);
  }
}

}  // namespace
}  // namespace hdps
