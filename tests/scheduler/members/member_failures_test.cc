// Tests when failures of members end a job.
#include "scheduler/members/member_failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hdps {
namespace {

using ::testing::HasSubstr;

MemberFailure FailureAt(const std::string& place, const std::string& cause, int mistake = 0) {
  const Role role = place.starts_with("server") ? Role::kServer : Role::kWorker;
  return {role, place, place + ": " + cause, mistake};
}

std::optional<JobFailure> Add(MemberFailures& failures, const MemberFailure& failure, Clock clock) {
  return failures.Add(failure, clock, /*members=*/3, "step 4");
}

TEST(MemberFailures, TheThirdFailureOfOnePlaceWithoutProgressEndsTheJobWithTheFirstCause) {
  MemberFailures failures;
  EXPECT_FALSE(Add(failures, FailureAt("server 0", "disk"), 6));
  EXPECT_FALSE(Add(failures, FailureAt("server 1", "disk"), 6));
  EXPECT_FALSE(Add(failures, FailureAt("server 0", "memory"), 5));
  const auto end = Add(failures, FailureAt("server 0", "memory"), 6);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->exit_status, 3);
  EXPECT_THAT(end->message, HasSubstr("server 0 has failed 3 times without a step of progress"));
  EXPECT_THAT(end->message, HasSubstr("at first server 0: disk. The job goes on from step 4"));
}

TEST(MemberFailures, AStepOfProgressBeginsTheCountAnew) {
  MemberFailures failures;
  for (Clock clock = 1; clock < 20; ++clock) {
    EXPECT_FALSE(Add(failures, FailureAt("worker 0", "x"), clock));
  }
}

TEST(MemberFailures, ASecondProcessInOnePlaceIsBelievedWhenItBlamesTheOperator) {
  MemberFailures failures;
  EXPECT_FALSE(Add(failures, FailureAt("worker 0", "data.csv:7", 2), 1));
  const auto end = Add(failures, FailureAt("worker 0", "data.csv:9", 2), 1);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->exit_status, 2);
  EXPECT_EQ(end->message, "worker 0: data.csv:7");
}

TEST(MemberFailures, AllOfARoleAreBelieved) {
  MemberFailures failures;
  EXPECT_FALSE(Add(failures, FailureAt("server 0", "x", 2), 1));  // Another role counts separately.
  EXPECT_FALSE(Add(failures, FailureAt("worker 0", "x", 2), 1));
  EXPECT_FALSE(Add(failures, FailureAt("worker 1", "x", 2), 1));
  EXPECT_EQ(Add(failures, FailureAt("worker 2", "x", 2), 1)->exit_status, 2);
}

TEST(MemberFailures, AMistakeIsKeptUntilSomebodyHasComeForItsFinder) {
  MemberFailures failures;
  EXPECT_FALSE(Add(failures, FailureAt("worker 0", "disk"), 1));
  EXPECT_FALSE(failures.mistake());
  EXPECT_FALSE(Add(failures, FailureAt("worker 1", "data.csv:7", 2), 1));
  ASSERT_TRUE(failures.mistake());
  EXPECT_EQ(failures.mistake()->message, "worker 1: data.csv:7");
  failures.Replaced();
  EXPECT_FALSE(failures.mistake());
}

TEST(MemberFailures, BeforeTheFirstViewOnlyAllOfARoleAreBelieved) {
  MemberFailures failures;
  EXPECT_FALSE(failures.AddBeforeFirstView(FailureAt("worker 20", "x"), 1));
  EXPECT_FALSE(failures.AddBeforeFirstView(FailureAt("worker 20", "x", 2), 2));
  EXPECT_FALSE(failures.mistake());  // No member is lost or awaited.
  const auto end = failures.AddBeforeFirstView(FailureAt("worker 21", "y", 2), 2);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->message, "worker 21: y");
}

}  // namespace
}  // namespace hdps
