// Tests the notices for people, and how often they appear.
#include "scheduler/report/notices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Heard {
  std::vector<std::string> notices, warnings, progress;
  ProgressListener Listener(bool with_warnings = true, bool with_progress = true) {
    ProgressListener listener;
    listener.notice = [this](const std::string& line) { notices.push_back(line); };
    if (with_warnings) {
      listener.warning = [this](const std::string& line) { warnings.push_back(line); };
    }
    if (with_progress) {
      listener.progress = [this](const std::string& line) { progress.push_back(line); };
    }
    return listener;
  }
};

TEST(Notices, AnEmptyLineIsNotSaid) {
  Heard heard;
  Notices notices(heard.Listener());
  notices.Say("");
  notices.Warn("");
  notices.SayOutside("", 0);
  EXPECT_THAT(heard.notices, IsEmpty());
  EXPECT_THAT(heard.warnings, IsEmpty());
  notices.Say(std::vector<std::string>{"one", "", "two"});
  EXPECT_THAT(heard.notices, ElementsAre("one", "two"));
}

TEST(Notices, WithoutAnEarForWarningsTheyAreNotices) {
  Heard heard;
  Notices(heard.Listener()).Warn("hot");
  EXPECT_THAT(heard.warnings, ElementsAre("hot"));
  Notices(heard.Listener(false)).Warn("hot");
  EXPECT_THAT(heard.notices, ElementsAre("warning: hot"));
}

TEST(Notices, AWaitIsToldEveryTenSecondsFromItsBeginning) {
  Heard heard;
  Notices notices(heard.Listener());
  notices.SayWait("first", 5000);  // The wait begins at 5 s.
  notices.SayWait("early", 14999);
  notices.SayWait("due", 15000);
  notices.SayWait("early", 24999);
  EXPECT_THAT(heard.notices, ElementsAre("due"));
  notices.BeginWaits(24999);
  notices.SayWait("early", 25000);
  notices.SayWait("", 40000);
  notices.SayWait("due again", 40000);
  EXPECT_THAT(heard.notices, ElementsAre("due", "due again"));
}

TEST(Notices, LinesOfStrangersAreCutAndCounted) {
  Heard heard;
  Notices notices(heard.Listener());
  for (int i = 0; i < 100; ++i) notices.SayOutside("refused", 0);
  EXPECT_EQ(heard.notices.size(), LineRateLimit::kAtOnce);
  notices.SayLeftOut(20000);
  EXPECT_THAT(heard.notices.back(), HasSubstr("80 more lines"));
}

TEST(Notices, ProgressGoesWhereSomebodyWatchesIt) {
  Heard heard;
  Notices watched(heard.Listener());
  EXPECT_TRUE(watched.shows_progress());
  watched.ShowProgress("step 1");
  EXPECT_THAT(heard.progress, ElementsAre("step 1"));
  EXPECT_FALSE(Notices(heard.Listener(true, false)).shows_progress());
}

}  // namespace
}  // namespace hdps
