// Tests the text of --faults: every rule, and messages for mistakes.
#include "common/process/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Faults Parse(const std::string& text) {
  Result<Faults> faults = ParseFaults(text);
  EXPECT_TRUE(faults.ok()) << faults.status().message();
  return faults.ok() ? *std::move(faults) : Faults();
}

TEST(Faults, NoTextHasNone) {
  const Faults faults = Parse("");
  EXPECT_FALSE(faults.armed);
  EXPECT_FALSE(faults.frames.any());
  EXPECT_TRUE(faults.files.empty() && faults.points.empty());
}

TEST(Faults, RulesOfFrames) {
  const FrameFaults frames =
      Parse("drop=5%,repeat=2.5%,reorder=10%,late=20%:10..200ms,seed=9").frames;
  EXPECT_EQ(frames.drop, 0.05);
  EXPECT_EQ(frames.repeat, 0.025);
  EXPECT_EQ(frames.reorder, 0.1);
  EXPECT_EQ(frames.late, 0.2);
  EXPECT_EQ(frames.late_ms_min, 10);
  EXPECT_EQ(frames.late_ms_max, 200);
  EXPECT_EQ(frames.seed, 9u);
  EXPECT_EQ(Parse("late=0..1s").frames.late, 1);
  EXPECT_EQ(Parse("late=0..1s").frames.late_ms_max, 1000);
}

TEST(Faults, Cuts) {
  const FrameFaults frames = Parse("cut=all,cut=scheduler:in@10s+30s,cut=members:out@500ms").frames;
  ASSERT_EQ(frames.cuts.size(), 3u);
  EXPECT_TRUE(frames.cuts[0].in && frames.cuts[0].out);
  EXPECT_EQ(frames.cuts[0].window.from_ms, 0);
  EXPECT_EQ(frames.cuts[1].whom, FrameFaults::Whom::kScheduler);
  EXPECT_TRUE(frames.cuts[1].in && !frames.cuts[1].out);
  EXPECT_EQ(frames.cuts[1].window.from_ms, 10'000);
  EXPECT_EQ(frames.cuts[1].window.for_ms, 30'000);
  EXPECT_EQ(frames.cuts[2].whom, FrameFaults::Whom::kMembers);
  EXPECT_TRUE(!frames.cuts[2].in && frames.cuts[2].out);
  EXPECT_EQ(frames.cuts[2].window.for_ms, std::numeric_limits<int64_t>::max());
}

TEST(Faults, AWindowMayBeTheTimeOfAFile) {
  const Faults faults = Parse("cut=all:in@while=/tmp/a.cut,full=*@while=b");
  EXPECT_EQ(faults.frames.cuts[0].window.while_file, "/tmp/a.cut");
  EXPECT_EQ(faults.files[0].window.while_file, "b");
  EXPECT_FALSE(ParseFaults("cut=all@while=").ok());
}

TEST(Faults, Files) {
  const std::vector<FileFault> files =
      Parse("full=checkpoint/*:1MiB@2s+3s,full=x,failing=*.tmp:7,slow=*:50ms,torn=a").files;
  ASSERT_EQ(files.size(), 5u);
  EXPECT_EQ(files[0].kind, FileFault::Kind::kFull);
  EXPECT_EQ(files[0].glob, "checkpoint/*");
  EXPECT_EQ(files[0].amount, 1u << 20);
  EXPECT_EQ(files[0].window.from_ms, 2000);
  EXPECT_EQ(files[0].window.for_ms, 3000);
  EXPECT_EQ(files[1].amount, 0u);
  EXPECT_EQ(files[2].amount, 7u);
  EXPECT_EQ(files[3].amount, 50u);
  EXPECT_EQ(files[4].kind, FileFault::Kind::kTorn);
  EXPECT_EQ(files[4].amount, 1u);
}

TEST(Faults, Points) {
  const std::vector<PlannedFailure> points =
      Parse(
          "point=server.push.applied:crash@3,point=spill.write:error@2..,"
          "point=worker.step.pulled:sleep=20ms@4..6,point=member.view.taken:exit")
          .points;
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[0].point, FailpointIndex("server.push.applied"));
  EXPECT_EQ(points[0].action, FailpointAction::kCrash);
  EXPECT_EQ(points[0].first, 3u);
  EXPECT_EQ(points[0].last, 3u);
  EXPECT_EQ(points[1].action, FailpointAction::kError);
  EXPECT_EQ(points[1].last, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(points[2].sleep_ms, 20);
  EXPECT_EQ(points[2].last, 6u);
  EXPECT_EQ(points[3].action, FailpointAction::kExit);
  EXPECT_EQ(points[3].first, 1u);
  EXPECT_TRUE(Parse("count").armed);
}

TEST(Faults, AMistakeNamesTheRuleAndWhatWouldBeRight) {
  const struct {
    const char *text, *place, *mend;
  } mistakes[] = {
      {"drop=5", "rule 1, \"drop=5\"", "0% to 100%, such as 5%"},
      {"drop=5%,repeat=101%", "rule 2, \"repeat=101%\"", "0% to 100%"},
      {"seed=3,", "rule 2, \"\"", "no such rule"},
      {"drpo=5%", "\"drpo=5%\"", "did you mean \"drop\"?"},
      {"late=200", "\"late=200\"", "0..200ms"},
      {"late=300..200ms", "rule 1", "0..200ms"},
      {"cut=server_1", "rule 1", "all, scheduler or members"},
      {"cut=all:up", "rule 1", ":in or :out"},
      {"cut=all@10", "rule 1", "@10s+30s"},
      {"full=", "rule 1", "GLOB"},
      {"full=x:much", "rule 1", "1MiB"},
      {"failing=x:0", "rule 1", "N being at least 1"},
      {"slow=x", "rule 1", "50ms"},
      {"torn=x@soon", "rule 1", "@10s+30s"},
      {"point=server.push.aplied:crash", "rule 1", "did you mean \"server.push.applied\"?"},
      {"point=server.push.applied", "rule 1", "NAME:crash"},
      {"point=server.push.applied:sleep", "rule 1", "sleep=50ms"},
      {"point=server.push.applied:crash=1s", "rule 1", "NAME:crash"},
      {"point=server.push.applied:error", "rule 1", "no error can come out"},
      {"point=server.push.applied:crash@0", "rule 1", "counted from 1"},
      {"point=server.push.applied:crash@5..4", "rule 1", "@N..M"},
      {"seed=-1", "rule 1", "whole number"},
  };
  for (const auto& mistake : mistakes) {
    const Result<Faults> faults = ParseFaults(mistake.text);
    ASSERT_FALSE(faults.ok()) << mistake.text;
    EXPECT_EQ(faults.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(faults.status().message(),
                AllOf(HasSubstr("--faults"), HasSubstr(mistake.place), HasSubstr(mistake.mend)));
  }
}

TEST(Faults, TheListNamesEveryPoint) {
  const std::string list = ListFailpoints();
  EXPECT_THAT(list,
              AllOf(HasSubstr("server.push.before_ack\n"), HasSubstr("spill.write (error)\n")));
  EXPECT_EQ(static_cast<size_t>(std::count(list.begin(), list.end(), '\n')),
            kFailpointNames.size());
}

}  // namespace
}  // namespace hdps
