// Tests when progress is written and shown.
#include "scheduler/report/progress_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "scheduler/members/member_step.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ProgressReportTest : public ::testing::Test {
 protected:
  ProgressReportTest() {
    EXPECT_TRUE(files_->MakeDirectories("out").ok());
    report_ = std::make_unique<ProgressReport>(1000, *files_, "out", job_, "", false);
    report_->run().Begin(0, {});
    report_->Begin(0);
  }
  Notices NoticesOf(bool watched) {
    ProgressListener listener;
    listener.notice = [this](const std::string& line) { said_.push_back(line); };
    if (watched) listener.progress = [this](const std::string& line) { shown_.push_back(line); };
    return Notices(listener);
  }
  // Training reaches a new step each millisecond.
  void Tick(TimeMs now, Notices& notices) {
    report_->OnTick(
        now,
        [now] {
          return ProgressState{now, 0, 0.5, static_cast<uint64_t>(now), double(now)};
        },
        notices);
  }
  long LinesOfMetrics() {
    const std::string text = *ReadWholeFile(*files_, "out/metrics.jsonl", 1u << 20);
    return std::ranges::count(text, '\n');
  }
  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  Job job_;
  std::unique_ptr<ProgressReport> report_;
  std::vector<std::string> said_, shown_;
};

TEST_F(ProgressReportTest, ALineIsWrittenAndShownOnceAnInterval) {
  Notices notices = NoticesOf(true);
  for (TimeMs now = 0; now <= 5999; now += 20) Tick(now, notices);
  EXPECT_EQ(LinesOfMetrics(), 5);
  EXPECT_THAT(shown_, SizeIs(5));
  EXPECT_THAT(said_, SizeIs(0));
}

TEST_F(ProgressReportTest, WhereNobodyWatchesItIsSaidEveryTenSeconds) {
  Notices notices = NoticesOf(false);
  for (TimeMs now = 0; now <= 29999; now += 20) Tick(now, notices);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("10000"), HasSubstr("20000")));
}

TEST_F(ProgressReportTest, WhileNobodyTrainsNothingIsWritten) {
  Notices notices = NoticesOf(true);
  for (TimeMs now = 0; now <= 5999; now += 20) report_->OnTick(now, nullptr, notices);
  EXPECT_EQ(LinesOfMetrics(), 0);
}

TEST_F(ProgressReportTest, ALossIsALineForEachMemberAndEachNewPrimary) {
  AfterLoss loss;
  loss.lost = {{"server 1 (s1)", 1500, "its process has ended"}};
  loss.promoted = {{{1}, "server 1 (s1)", "server 2 (s2)"}};
  report_->OnLoss(2000, loss);
  EXPECT_EQ(LinesOfMetrics(), 2);
}

}  // namespace
}  // namespace hdps
