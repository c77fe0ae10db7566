// Tests failpoints: without effect while off, as planned while on.
#include "common/platform/failpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

constexpr size_t kBeforeRename = FailpointIndex("file.before_rename");

Status PassFailing() {
  HDPS_FAILPOINT_OR_RETURN("file.before_rename");
  return {};
}
void Pass() { HDPS_FAILPOINT("file.before_rename"); }

PlannedFailure At(FailpointAction action, uint64_t first, uint64_t last) {
  return {kBeforeRename, action, 0, first, last};
}

TEST(Failpoint, OffItDoesNothingAndCountsNothing) {
  { const ScopedFailpoints on({At(FailpointAction::kError, 1, 100)}); }
  EXPECT_TRUE(PassFailing().ok());
  EXPECT_EQ(FailpointHits(kBeforeRename), 0u);
}

TEST(Failpoint, FailsFromItsFirstHitToItsLast) {
  const ScopedFailpoints on({At(FailpointAction::kError, 2, 3)});
  std::string outcomes;
  for (int i = 0; i < 5; ++i) outcomes += PassFailing().ok() ? '.' : 'x';
  EXPECT_EQ(outcomes, ".xx..");
  EXPECT_EQ(FailpointHits(kBeforeRename), 5u);
}

TEST(Failpoint, AnErrorNamesItsPoint) {
  const ScopedFailpoints on({At(FailpointAction::kError, 1, 1)});
  const Status status = PassFailing();
  EXPECT_EQ(status.code(), Code::kIoError);
  EXPECT_THAT(status.message(), HasSubstr("file.before_rename"));
}

TEST(Failpoint, ArmingBeginsTheCountAnew) {
  const ScopedFailpoints before({});
  Pass();
  const ScopedFailpoints on({});
  EXPECT_EQ(FailpointHits(kBeforeRename), 0u);
  Pass();
  EXPECT_EQ(FailpointHits(kBeforeRename), 1u);
}

TEST(Failpoint, StandsStillForItsTime) {
  PlannedFailure failure = At(FailpointAction::kSleep, 1, 1);
  failure.sleep_ms = 30;
  const ScopedFailpoints on({failure});
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  const int64_t begin = clock->NowNs();
  Pass();
  EXPECT_GE(clock->NowNs() - begin, 30'000'000);
}

TEST(FailpointDeathTest, CrashesAndExitsAtTheHitThatWasPlanned) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ArmFailpoints({At(FailpointAction::kCrash, 2, 2)});
        Pass();
        std::fputs("once", stderr);
        Pass();
      },
      ::testing::KilledBySignal(SIGKILL), "once");
  EXPECT_EXIT(
      {
        ArmFailpoints({At(FailpointAction::kExit, 1, 1)});
        Pass();
      },
      ::testing::ExitedWithCode(1), "exit on purpose at file.before_rename");
}

TEST(Failpoint, EveryNameIsThereOnceAndSaysWhoseItIs) {
  std::set<std::string_view> names;
  for (const FailpointName& point : kFailpointNames) {
    EXPECT_TRUE(names.insert(point.name).second) << point.name;
    EXPECT_NE(point.name.find('.'), std::string_view::npos) << point.name;
  }
  EXPECT_GE(names.size(), 40u);
}

TEST(Failpoint, AnAtomicWriteThatFailsBeforeItsRenameLeavesTheOldFile) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  ASSERT_TRUE(WriteFileAtomically(*files, "state", "old").ok());
  const ScopedFailpoints on({At(FailpointAction::kError, 1, 1)});
  EXPECT_FALSE(WriteFileAtomically(*files, "state", "new").ok());
  EXPECT_EQ(*ReadWholeFile(*files, "state", 100), "old");
  EXPECT_FALSE(files->Exists("state.tmp"));
}

}  // namespace
}  // namespace hdps
