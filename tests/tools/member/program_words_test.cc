// Tests the arguments of the program that a member becomes, and when it is started again.
#include "tools/member/program_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/member/restart_policy.h"

namespace hdps {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

MemberPlan PlanOf(Role role, int32_t rank = -1) {
  MemberPlan plan;
  plan.role = role;
  plan.rank = rank;
  plan.servers = 1;
  plan.workers = 2;
  return plan;
}

MemberFlagsGiven Given() {
  MemberFlagsGiven given;
  given.flags = {{"job", "j.json"}, {"out", "/o"}, {"spill_path", "/s"}, {"max_bad_rows", "3"}};
  given.out = "/o";
  given.own_host = "10.0.0.5";
  return given;
}

std::vector<std::string> Words(const MemberPlan& plan, const MemberFlagsGiven& given) {
  const Result<std::vector<std::string>> words = ProgramArguments(plan, given);
  EXPECT_TRUE(words.ok()) << words.status().message();
  return words.ok() ? *words : std::vector<std::string>();
}

TEST(ProgramWordsTest, EachRoleGetsItsFlagsAndFindsTheSchedulerThroughOut) {
  EXPECT_THAT(Words(PlanOf(Role::kScheduler), Given()),
              ElementsAre("--address_file=/o/scheduler.address", "--job=j.json",
                          "--listen=tcp://127.0.0.1:0", "--out=/o", "--servers=1", "--workers=2"));
  EXPECT_THAT(Words(PlanOf(Role::kServer, 0), Given()),
              ElementsAre("--job=j.json", "--rank=0", "--scheduler=file:/o/scheduler.address",
                          "--servers=1", "--spill_path=/s", "--workers=2"));
  MemberPlan worker = PlanOf(Role::kWorker, 1);
  worker.number_here = 3;
  EXPECT_THAT(Words(worker, Given()),
              ElementsAre("--gpu=3", "--job=j.json", "--max_bad_rows=3", "--rank=1",
                          "--scheduler=file:/o/scheduler.address", "--servers=1", "--workers=2"));
}

TEST(ProgramWordsTest, AnUnknownRankIsSaid) {
  // Without it the program would take the number among all for its rank.
  EXPECT_THAT(Words(PlanOf(Role::kWorker), Given()), Contains("--rank=-1"));
}

TEST(ProgramWordsTest, BeyondOneMachineTheOwnAddressIsUsed) {
  for (const auto& [role, word] : {std::pair(Role::kScheduler, "--listen=tcp://10.0.0.5:0"),
                                   std::pair(Role::kServer, "--listen=tcp://10.0.0.5:0"),
                                   std::pair(Role::kWorker, "--collective_host=10.0.0.5")}) {
    MemberPlan plan = PlanOf(role, role == Role::kScheduler ? -1 : 0);
    EXPECT_THAT(Words(plan, Given()), Not(Contains(HasSubstr("10.0.0.5"))));
    plan.one_machine = false;
    EXPECT_THAT(Words(plan, Given()), Contains(word));
  }
}

TEST(ProgramWordsTest, GivenAddressesStay) {
  MemberFlagsGiven given = Given();
  given.from_environment = {"listen", "scheduler"};
  given.scheduler = "tcp://10.0.0.9:8118";
  EXPECT_THAT(Words(PlanOf(Role::kServer, 0), given), Not(Contains(StartsWith("--scheduler"))));
  EXPECT_THAT(Words(PlanOf(Role::kServer, 0), given), Not(Contains(StartsWith("--listen"))));
  given.from_environment = {"scheduler"};
  EXPECT_THAT(Words(PlanOf(Role::kScheduler), given), Contains("--listen=tcp://10.0.0.9:8118"));
  given.scheduler = "file:/elsewhere";
  EXPECT_THAT(Words(PlanOf(Role::kScheduler), given), Contains("--address_file=/elsewhere"));
  EXPECT_THAT(Words(PlanOf(Role::kScheduler), given), Contains("--listen=tcp://127.0.0.1:0"));
}

TEST(ProgramWordsTest, UnderALauncherEachKeepsItsLog) {
  MemberPlan plan = PlanOf(Role::kWorker, 1);
  plan.launched = true;
  EXPECT_THAT(Words(plan, Given()), Contains("--log_file=/o/log/worker_1.log"));
}

TEST(ProgramWordsTest, WithoutOutOrAddressNobodyIsFound) {
  MemberFlagsGiven given = Given();
  given.out.clear();
  for (const Role role : {Role::kScheduler, Role::kServer, Role::kWorker}) {
    const Status status = ProgramArguments(PlanOf(role, 0), given).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("--out is missing"));
  }
}

constexpr int kKilled = 128 + 9;

TEST(RestartPolicyTest, WaitsLongerAndGivesUp) {
  RestartPolicy policy(Role::kWorker);
  for (const int64_t wait_ms : {200, 400, 800, 1600}) {
    EXPECT_EQ(policy.AfterEnd(kKilled, false, 0, 1000).wait_ms, wait_ms);
  }
  const NextStart last = policy.AfterEnd(kKilled, false, 0, 1000);
  EXPECT_TRUE(last.gave_up);
  EXPECT_EQ(last.wait_ms, std::nullopt);
  EXPECT_EQ(last.exit_status, 3);
}

TEST(RestartPolicyTest, ALongLifeBeginsAnew) {
  RestartPolicy policy(Role::kWorker);
  int64_t now = 0;
  for (int i = 0; i < 20; ++i, now += 61'000) {
    EXPECT_EQ(policy.AfterEnd(kKilled, false, now - 61'000, now).wait_ms, 200);
  }
}

TEST(RestartPolicyTest, AfterAFailureTheSchedulerHasTimeToEnd) {
  RestartPolicy policy(Role::kServer);
  EXPECT_EQ(policy.AfterEnd(3, false, 0, 5).wait_ms, 1000);
}

TEST(RestartPolicyTest, WhoIsDoneOrMistakenOrToldStaysEnded) {
  EXPECT_EQ(RestartPolicy(Role::kWorker).AfterEnd(0, false, 0, 5).exit_status, 0);
  EXPECT_EQ(RestartPolicy(Role::kWorker).AfterEnd(2, false, 0, 5).exit_status, 2);
  EXPECT_EQ(RestartPolicy(Role::kScheduler).AfterEnd(3, false, 0, 5).exit_status, 3);
  EXPECT_EQ(RestartPolicy(Role::kScheduler).AfterEnd(3, false, 0, 5).wait_ms, std::nullopt);
  EXPECT_EQ(RestartPolicy(Role::kWorker).AfterEnd(3, true, 0, 5).wait_ms, std::nullopt);
  EXPECT_TRUE(RestartPolicy(Role::kScheduler).AfterEnd(kKilled, false, 0, 5).wait_ms.has_value());
}

TEST(RestartPolicyTest, WhoFindsNoPlaceAnyMoreEndsQuietly) {
  RestartPolicy policy(Role::kWorker);
  ASSERT_TRUE(policy.AfterEnd(kKilled, false, 0, 5).wait_ms.has_value());
  const NextStart next = policy.AfterEnd(2, false, 205, 900);
  EXPECT_TRUE(next.unwanted);
  EXPECT_EQ(next.exit_status, 0);
}

}  // namespace
}  // namespace hdps
