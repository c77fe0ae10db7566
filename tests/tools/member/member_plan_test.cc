// Tests which member a process becomes under each launcher's variables, and which are refused.
#include "tools/member/member_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace hdps {
namespace {

using testing::HasSubstr;

GivenMember Servers(uint32_t servers) {
  GivenMember given;
  given.servers = servers;
  return given;
}

// Returns "server 1 of 2+2" and what else the plan says.
std::string Told(const GivenMember& given, const Variables& variables) {
  const Result<MemberPlan> plan = PlanMember(given, variables);
  if (!plan.ok()) return "error: " + plan.status().message();
  std::string told = RoleName(plan->role);
  if (plan->rank >= 0) told += " " + std::to_string(plan->rank);
  if (plan->servers && plan->workers) {
    told += " of " + std::to_string(*plan->servers) + "+" + std::to_string(*plan->workers);
  }
  if (plan->number_here) told += " here " + std::to_string(*plan->number_here);
  if (!plan->one_machine) told += " apart";
  if (plan->restart) told += " again";
  return told;
}

TEST(MemberPlanTest, AWordTellsTheRole) {
  GivenMember given;
  EXPECT_EQ(Told(given, {{"MS_ROLE", "MS_SCHED"}}), "scheduler");
  EXPECT_EQ(
      Told(given, {{"MS_ROLE", "MS_PSERVER"}, {"MS_SERVER_NUM", "2"}, {"MS_WORKER_NUM", "3"}}),
      "server of 2+3");
  EXPECT_EQ(Told(given, {{"MS_ROLE", "MS_WORKER"}, {"MS_NODE_ID", "1"}}), "worker 1");
  EXPECT_EQ(Told(given, {{"DMLC_ROLE", "worker"}}), "worker");
  EXPECT_EQ(Told(given, {{"MS_ROLE", "MS_WORKER"}, {"DMLC_ROLE", "worker"}}), "worker");
  given.role = "server";
  given.rank = 1;
  EXPECT_EQ(Told(given, {{"MS_ROLE", "MS_WORKER"}, {"MS_NODE_ID", "0"}, {"PMI_RANK", "0"}}),
            "server 1 again");
}

TEST(MemberPlanTest, APodsNameIsNoRank) {
  for (const char* id : {"census-worker-1", "1a", "worker"}) {
    EXPECT_EQ(Told({}, {{"MS_ROLE", "MS_WORKER"}, {"MS_NODE_ID", id}}), "worker");
  }
}

TEST(MemberPlanTest, TheNumberAmongAllTellsTheRole) {
  const std::vector<std::string> roles = {"scheduler", "server 0", "server 1", "worker 0",
                                          "worker 1"};
  for (size_t i = 0; i < roles.size(); ++i) {
    const std::string number = std::to_string(i);
    const std::string told = roles[i] + " of 2+2 here " + number;
    EXPECT_EQ(Told(Servers(2), {{"PMIX_RANK", number},
                                {"OMPI_COMM_WORLD_RANK", number},
                                {"OMPI_COMM_WORLD_SIZE", "5"},
                                {"OMPI_COMM_WORLD_LOCAL_RANK", number},
                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "5"}}),
              told + " again");
    EXPECT_EQ(Told(Servers(2), {{"PMI_RANK", number},
                                {"PMI_SIZE", "5"},
                                {"MPI_LOCALRANKID", number},
                                {"MPI_LOCALNRANKS", "5"}}),
              told + " again");
    EXPECT_EQ(Told(Servers(2), {{"SLURM_PROCID", number},
                                {"SLURM_NTASKS", "5"},
                                {"SLURM_LOCALID", number},
                                {"SLURM_NNODES", "1"}}),
              told + " again");
  }
  GivenMember workers;
  workers.workers = 3;
  EXPECT_EQ(Told(workers, {{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "5"}}), "worker 0 of 1+3 again");
}

TEST(MemberPlanTest, SeveralMachinesAreTold) {
  EXPECT_EQ(Told(Servers(2), {{"OMPI_COMM_WORLD_RANK", "4"},
                              {"OMPI_COMM_WORLD_SIZE", "5"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
            "worker 1 of 2+2 here 1 apart again");
  EXPECT_EQ(Told(Servers(2), {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "5"}, {"SLURM_NNODES", "3"}}),
            "server 0 of 2+2 apart again");
}

TEST(MemberPlanTest, SlurmNumbersThatMpirunInheritsAreNotTheProcess) {
  EXPECT_EQ(Told(Servers(2), {{"OMPI_COMM_WORLD_RANK", "4"},
                              {"OMPI_COMM_WORLD_SIZE", "5"},
                              {"SLURM_PROCID", "0"},
                              {"SLURM_NTASKS", "1"}}),
            "worker 1 of 2+2 again");
  EXPECT_EQ(Told(Servers(2), {{"PMIX_RANK", "1"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "5"}}),
            "server 0 of 2+2 again");
}

TEST(MemberPlanTest, WhoStartsAMemberAgain) {
  const Variables slurm = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "3"}};
  EXPECT_THAT(Told(Servers(1), slurm), HasSubstr("again"));
  Variables pod = slurm;
  pod["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  EXPECT_THAT(Told(Servers(1), pod), testing::Not(HasSubstr("again")));
  GivenMember given = Servers(1);
  given.restart = "on-failure";
  EXPECT_THAT(Told(given, pod), HasSubstr("again"));
  given.restart = "never";
  EXPECT_THAT(Told(given, slurm), testing::Not(HasSubstr("again")));
}

struct PlantedMistake {
  GivenMember given;
  Variables variables;
  std::vector<std::string> said;  // Place, value and mend.
};

TEST(MemberPlanTest, MistakesNamePlaceValueAndMend) {
  GivenMember both = Servers(2), bad_role, bad_restart = Servers(1), none = Servers(0);
  both.workers = 2;
  bad_role.role = "servr";
  bad_restart.restart = "always";
  const std::vector<PlantedMistake> mistakes = {
      {{}, {}, {"no variable tells the role", "HDPS_ROLE"}},
      {bad_role, {}, {"--role=servr", "did you mean", "server"}},
      {{}, {{"MS_ROLE", "MS_SERVER"}}, {"MS_ROLE=MS_SERVER", "MS_PSERVER"}},
      {{}, {{"DMLC_ROLE", "Worker"}}, {"DMLC_ROLE=Worker", "worker"}},
      {{},
       {{"MS_ROLE", "MS_WORKER"}, {"DMLC_ROLE", "server"}},
       {"MS_ROLE=MS_WORKER and DMLC_ROLE=server contradict", "unset one"}},
      {both,
       {{"PMI_RANK", "1"}, {"OMPI_COMM_WORLD_RANK", "2"}},
       {"PMI_RANK=1 and OMPI_COMM_WORLD_RANK=2 contradict", "unset one"}},
      {both, {{"PMIX_RANK", "5"}}, {"PMIX_RANK=5 is beyond all", "0 to 4", "--workers"}},
      {both, {{"PMI_RANK", "-1"}}, {"PMI_RANK=-1", "no whole number"}},
      {both, {{"SLURM_PROCID", "99999999999"}}, {"SLURM_PROCID=99999999999", "no whole number"}},
      {both,
       {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}},
       {"PMI_SIZE=4", "1 scheduler, 2 servers and 2 workers are 5", "--servers"}},
      {Servers(2),
       {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "3"}},
       {"SLURM_NTASKS=3 leaves no worker", "--servers=2", "at least 4"}},
      {{}, {{"OMPI_COMM_WORLD_RANK", "0"}}, {"OMPI_COMM_WORLD_RANK=0", "--servers=M"}},
      {Servers(2), {{"PMIX_RANK", "1"}}, {"PMIX_RANK=1", "--workers=N"}},
      {none, {{"MS_ROLE", "MS_SCHED"}}, {"--servers=0", "1 to 4096"}},
      {bad_restart, {{"MS_ROLE", "MS_SCHED"}}, {"--restart=always", "never or on-failure"}},
      {{},
       {{"MS_ROLE", "MS_SCHED"}, {"MS_SERVER_NUM", "2"}, {"DMLC_NUM_SERVER", "3"}},
       {"MS_SERVER_NUM=2 and DMLC_NUM_SERVER=3 contradict"}},
      {{},
       {{"MS_ROLE", "MS_WORKER"}, {"MS_SCHED_HOST", "node1"}},
       {"MS_SCHED_HOST=node1", "without MS_SCHED_PORT", "--scheduler"}},
      {{},
       {{"DMLC_ROLE", "worker"},
        {"MS_SCHED_HOST", "a"},
        {"MS_SCHED_PORT", "1"},
        {"DMLC_PS_ROOT_URI", "a"},
        {"DMLC_PS_ROOT_PORT", "2"}},
       {"MS_SCHED_PORT (a:1)", "DMLC_PS_ROOT_PORT (a:2)", "contradict"}},
      {both, {{"PMI_RANK", "4"}, {"MS_NODE_ID", "0"}}, {"MS_NODE_ID=0", "worker 1", "contradict"}},
  };
  for (const PlantedMistake& mistake : mistakes) {
    const Status status = PlanMember(mistake.given, mistake.variables).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << mistake.said.front();
    for (const std::string& part : mistake.said) EXPECT_THAT(status.message(), HasSubstr(part));
  }
}

TEST(MemberPlanTest, WhatIsGivenWinsOverContradictions) {
  GivenMember given;
  given.role = "worker";
  given.scheduler = true;
  given.servers = 1;
  EXPECT_EQ(Told(given, {{"MS_ROLE", "MS_SCHED"},
                         {"DMLC_ROLE", "server"},
                         {"MS_SCHED_HOST", "node1"},
                         {"MS_SERVER_NUM", "2"},
                         {"DMLC_NUM_SERVER", "3"}}),
            "worker");
}

TEST(MemberPlanTest, EveryVariableThatIsReadIsAskedFor) {
  const auto names = MemberVariables();
  for (const char* name : {"MS_ROLE", "DMLC_ROLE", "PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK",
                           "SLURM_PROCID", "SLURM_LOCALID", "KUBERNETES_SERVICE_HOST"}) {
    EXPECT_EQ(std::ranges::count(names, std::string_view(name)), 1) << name;
  }
}

}  // namespace
}  // namespace hdps
