// Tests members that ask for a rank that is taken by now: the job continues, and so do they. A rank
// in the scheduler's own job is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "tests/scheduler/scheduler_node_fixture.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

class SchedulerRanksTest : public SchedulerNodeTest {
 protected:
  SchedulerRanksTest() {
    options_.job.checkpoint.every_steps = 4;
    options_.job.cluster.replace_after_s = 3000;
    options_.steps_per_epoch = 300;
  }
  void ReachBy(const std::string& worker, Clock clock) {
    ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member(worker).clock >= clock; }));
  }
};

TEST_F(SchedulerRanksTest, WhoseRankIsTakenStandsByForAsLongAsTheJobGoesOn) {
  Start();
  ReachBy("worker b", 6);
  cluster_->member("worker b").cut_off = true;
  cluster_->Add(Role::kWorker, "worker c");
  ReachBy("worker c", 10);
  const ScriptedMember& late = cluster_->Add(Role::kWorker, "worker d", 1);
  EXPECT_TRUE(cluster_->RunUntil([&] { return cluster_->Noticed("worker d stands by: rank 1"); }));
  // Longer than a loss may stay unnoticed.
  const TimeMs patience = cluster_->now + 5'000;
  EXPECT_FALSE(cluster_->RunUntil([&] { return late.client.ended(); }, patience - cluster_->now))
      << late.client.reason();
  ASSERT_FALSE(node().done());
  cluster_->member("worker c").cut_off = true;
  ReachBy("worker d", 40);
  ExpectDone();
  EXPECT_EQ(late.client.exit_status(), 0) << late.client.reason();
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"failures_survived\": 2"));
}

TEST_F(SchedulerRanksTest, WhoStandsByInTheEndEndsWell) {
  Start();
  ReachBy("worker b", 6);
  const ScriptedMember& late = cluster_->Add(Role::kWorker, "worker d", 1);
  ExpectDone();
  EXPECT_EQ(late.client.exit_status(), 0) << late.client.reason();
}

TEST_F(SchedulerRanksTest, WhoseRankIsTakenTakesAnyPlaceThatIsFree) {
  Start();
  ReachBy("worker b", 6);
  cluster_->member("worker a").cut_off = true;
  cluster_->member("worker b").cut_off = true;
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->Noticed("worker 1 (worker b) is lost"); }));
  cluster_->Add(Role::kWorker, "worker c", 0);
  cluster_->Add(Role::kWorker, "worker d", 0);
  ExpectDone();
  EXPECT_EQ(cluster_->member("worker d").client.exit_status(), 0);
  EXPECT_GT(cluster_->member("worker d").clock, 6);
}

// With copies the job continues without a lost server. When it stands for another loss, both are on
// their way: their launchers start them with their old ranks.
TEST_F(SchedulerRanksTest, AViewOfFewerServersWaitsForThoseOnTheirWay) {
  options_.num_servers = 3;
  options_.job.cluster.replicas = 1;
  Start();
  ReachBy("worker b", 6);
  cluster_->member("server b").cut_off = true;
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->Noticed("no step is lost"); }));
  cluster_->member("server c").cut_off = true;
  cluster_->member("worker b").cut_off = true;
  ASSERT_TRUE(cluster_->RunUntil([&] {
    return cluster_->Noticed("worker 1 (worker b) is lost") &&
           cluster_->Noticed("server 2 (server c) is lost");
  }));
  cluster_->Add(Role::kWorker, "worker c", 1);
  cluster_->Add(Role::kServer, "server d", 2);
  EXPECT_FALSE(cluster_->RunUntil([&] { return cluster_->member("worker c").clock > 0; }, 3'000));
  const ScriptedMember& last = cluster_->Add(Role::kServer, "server e", 1);
  ExpectDone();
  EXPECT_EQ(last.client.exit_status(), 0) << last.client.reason();
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"servers\": 3"));
}

TEST_F(SchedulerRanksTest, ARankInTheJobOfTheSchedulerIsTold) {
  for (const int32_t rank : {-1, 0, 2}) {
    for (const uint32_t workers : {1, 3}) {
      options_.job.parallel.global_rank = rank;
      options_.num_workers = workers;
      Start();
      EXPECT_EQ(cluster_->Noticed("warning: parallel.global_rank = " + std::to_string(rank) +
                                  " is ignored here"),
                rank > 0 || (rank == 0 && workers > 1));
    }
  }
}

}  // namespace
}  // namespace hdps
