// Tests which members are lost, what the job does about it, and which view comes next.
#include "scheduler/members/member_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/job/job_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "tests/scheduler/members/arrivals.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Do = MemberStep::Do;

std::shared_ptr<const Job> JobOf(uint32_t replicas, DenseExchange exchange) {
  auto job = std::make_shared<Job>();
  job->cluster.shards = 8;
  job->cluster.replicas = replicas;
  job->cluster.dead_after_ms = 1000;
  job->cluster.replace_after_s = 60;
  job->parallel.dense_exchange = exchange;
  return job;
}

// A cluster of 3 servers (10, 11, 12) and 2 workers (20, 21), complete at time 0.
class MemberChangesTest : public ::testing::Test {
 protected:
  explicit MemberChangesTest(uint32_t replicas = 0,
                             DenseExchange exchange = DenseExchange::kServers)
      : job_(JobOf(replicas, exchange)), changes_(job_, rendezvous_, false) {
    FillPlaces(rendezvous_, 0);
    changes_.Enter(changes_.First(), 0);
    stand_.clock = 6;
    stand_.point_of_return = "step 4";
  }
  std::shared_ptr<const Job> job_;
  Rendezvous rendezvous_{ClusterOf(3, 2)};
  MemberChanges changes_;
  JobStand stand_;
};

class MemberCopiesTest : public MemberChangesTest {
 protected:
  MemberCopiesTest() : MemberChangesTest(1) {}
};

class UnderAllreduceTest : public MemberChangesTest {
 protected:
  UnderAllreduceTest() : MemberChangesTest(0, DenseExchange::kAllreduce) {
    stand_.why_back.clear();
  }
};

TEST_F(MemberChangesTest, TheCompleteClusterIsTold) {
  EXPECT_THAT(changes_.Complete(), ElementsAre("the cluster is complete: 3 servers, 2 workers"));
  EXPECT_EQ(changes_.NameOf({10}), "server 0 (s0)");
  EXPECT_EQ(changes_.NameOf({99}), "one who is no member");
}

TEST_F(MemberChangesTest, AMemberThatIsSilentIsLostAndTheJobStandsUntilAnotherHasCome) {
  changes_.members().Heard({11}, 500);
  EXPECT_THAT(changes_.FindLost(1000), IsEmpty());
  EXPECT_THAT(changes_.FindLost(1001), ElementsAre(PeerId{10}, PeerId{12}, PeerId{20}, PeerId{21}));
  const AfterLoss after = changes_.Lose({{20}}, stand_, 1001);
  EXPECT_FALSE(after.view);
  ASSERT_EQ(after.lost.size(), 1u);
  EXPECT_EQ(after.lost[0].name, "worker 0 (w0)");
  EXPECT_EQ(after.lost[0].silent_ms, 1001);
  EXPECT_THAT(after.notices,
              ElementsAre("worker 0 (w0) is lost: nothing was heard of it for 1.0 s. The job "
                          "stands until another process takes its place; then it goes on from "
                          "step 4"));
  const MemberStep wait = changes_.Next(stand_, 2001);
  EXPECT_EQ(wait.what, Do::kNothing);
  EXPECT_EQ(wait.wait, "worker 0 (w0) lost; waiting for 1 of 2 workers (worker 0) for 1 s");
  rendezvous_.Admit({22}, RequestOf(Role::kWorker, "w2"), 2001);
  const MemberStep back = changes_.Next(stand_, 2001);
  ASSERT_EQ(back.what, Do::kGoBack);
  EXPECT_EQ(back.num_lost, 1u);
  EXPECT_EQ(back.stood_since, 1001);
  EXPECT_EQ(back.view.view.value, 2u);
  EXPECT_EQ(back.view.restarts, 1u);
  EXPECT_EQ(back.view.workers[0].peer, PeerId{22});
  EXPECT_FALSE(changes_.under_way());
}

TEST_F(MemberChangesTest, AWorkerIsReplacedInPlaceWhereItsStepCanBeTakenUp) {
  stand_.why_back.clear();
  const AfterLoss after = changes_.Lose({{20}}, stand_, 1001);
  EXPECT_TRUE(after.in_place);
  EXPECT_THAT(after.notices[0], HasSubstr("takes up its step in place, whenever it comes"));
  EXPECT_EQ(changes_.Next(stand_, 1500).what, Do::kNothing);
  rendezvous_.Admit({22}, RequestOf(Role::kWorker, "w2"), 1501);
  const MemberStep step = changes_.Next(stand_, 1501);
  ASSERT_EQ(step.what, Do::kReplace);
  EXPECT_EQ(step.num_lost, 1u);
  EXPECT_EQ(step.stood_since, 1001);
  EXPECT_EQ(step.view.view.value, 2u);
  EXPECT_EQ(step.view.restarts, 0u);
  EXPECT_EQ(step.view.placed, changes_.members().view().placed);
  EXPECT_EQ(step.view.workers[0].peer, PeerId{22});
  EXPECT_EQ(step.view.workers[1].peer, PeerId{21});
  EXPECT_FALSE(changes_.under_way());
}

TEST_F(MemberChangesTest, WhyAllGoBackIsTold) {
  stand_.why_back.clear();
  const auto because = [&](const std::vector<PeerId>& lost) {
    EXPECT_FALSE(changes_.Lose(lost, stand_, 1001).in_place);
    for (const PeerId peer : lost) {
      const Role role = peer.value >= 20 ? Role::kWorker : Role::kServer;
      rendezvous_.Admit({peer.value + 100}, RequestOf(role, "new"), 1500);
    }
    const MemberStep step = changes_.Next(stand_, 1501);
    EXPECT_EQ(step.what, Do::kGoBack);
    changes_.Enter(step.view, 1501);
    return step.because;
  };
  EXPECT_EQ(because({{20}, {11}}), "server 1 was lost, and no other server has all of its rows");
  changes_.GiveUp({21}, "it is broken", 0, stand_);
  EXPECT_EQ(because({{21}}), "worker 1 failed or was let go");
  stand_.why_back = "of a reason";
  EXPECT_EQ(because({{120}}), "of a reason");
}

// The dense layers are at the workers alone.
TEST_F(UnderAllreduceTest, SomeWorkerHasToBeLeft) {
  EXPECT_TRUE(changes_.Lose({{20}}, stand_, 1001).in_place);
  EXPECT_FALSE(changes_.Lose({{21}}, stand_, 1002).in_place);
}

TEST_F(UnderAllreduceTest, NobodyIsLostWhileAllMeet) {
  stand_.takes_up = true;
  EXPECT_FALSE(changes_.Lose({{20}}, stand_, 1001).in_place);
}

TEST_F(MemberChangesTest, AMistakeIsBelievedWhenNobodyComesForItsFinder) {
  EXPECT_FALSE(changes_.GiveUp({20}, "data.csv:7:3: 'x'", 2, stand_).end);
  EXPECT_THAT(changes_.Refusal({20})->message, HasSubstr("without this process: data.csv:7:3"));
  EXPECT_THAT(changes_.FindLost(0), ElementsAre(PeerId{20}));
  changes_.Lose({{20}}, stand_, 0);
  EXPECT_EQ(changes_.Next(stand_, 59999).what, Do::kNothing);
  const MemberStep end = changes_.Next(stand_, 60000);
  ASSERT_EQ(end.what, Do::kEnd);
  EXPECT_EQ(end.end.exit_status, 2);
  EXPECT_EQ(end.end.message, "worker 0 (w0): data.csv:7:3: 'x'");
}

TEST_F(MemberChangesTest, WhatAMemberSaysTwiceCountsOnce) {
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(changes_.GiveUp({20}, "x", 2, stand_).end);
}

TEST_F(MemberChangesTest, OneThatWasOnlySilentHasItsPlaceBack) {
  changes_.Lose({{20}}, stand_, 1500);
  EXPECT_THAT(changes_.OnHeartbeat({20}, {}, 1600).notices,
              ElementsAre("worker 0 (w0) is heard again and has its place back"));
  EXPECT_EQ(changes_.Next(stand_, 1600).what, Do::kGoBack);
}

TEST_F(MemberChangesTest, OneWhosePlaceIsTakenMeanwhileGetsThatOfAnotherLostMember) {
  changes_.Lose({{20}, {21}}, stand_, 1500);
  rendezvous_.Admit({22}, RequestOf(Role::kWorker, "w2", 0), 1500);
  EXPECT_EQ(changes_.OnHeartbeat({20}, {}, 1600).notices.size(), 1u);
  const MemberStep back = changes_.Next(stand_, 1600);
  ASSERT_EQ(back.what, Do::kGoBack);
  EXPECT_EQ(back.view.workers[0].peer, PeerId{22});
  EXPECT_EQ(back.view.workers[1].peer, PeerId{20});
}

TEST_F(MemberChangesTest, ATroubleIsToldWhenItBeginsAndEnds) {
  Heartbeat beat;
  beat.number = 1;
  beat.trouble = "its disk is full";
  EXPECT_EQ(changes_.OnHeartbeat({11}, beat, 0).warning, "server 1 (s1) waits: its disk is full");
  beat.number = 2;
  EXPECT_EQ(changes_.OnHeartbeat({11}, beat, 0).warning, "");
  beat.number = 3;
  beat.trouble.clear();
  EXPECT_THAT(changes_.OnHeartbeat({11}, beat, 0).notices, ElementsAre("server 1 (s1) goes on"));
}

TEST_F(MemberChangesTest, AStrangerWhoBeatsIsToldToEnd) {
  EXPECT_FALSE(changes_.Refusal({20}));
  EXPECT_EQ(changes_.Refusal({99})->exit_status, 3);
}

TEST_F(MemberChangesTest, OtherNumbersAreTakenUpWhenAllAreHereAndTheJobIsQuiet) {
  ScaleRequest request;
  request.servers = 1;
  request.workers = -1;
  ASSERT_TRUE(changes_.OnRequest({50}, request, 0).accepted);
  EXPECT_EQ(changes_.Next(stand_, 0).what, Do::kNothing);
  rendezvous_.Admit({13}, RequestOf(Role::kServer, "s3"), 0);
  EXPECT_EQ(changes_.Next(stand_, 0).what, Do::kAskForQuiet);
  stand_.quiet = true;
  const MemberStep change = changes_.Next(stand_, 0);
  ASSERT_EQ(change.what, Do::kChange);
  EXPECT_EQ(change.view.restarts, 0u);
  EXPECT_EQ(change.view.servers.size(), 4u);
  ASSERT_EQ(change.view.workers.size(), 1u);
  EXPECT_EQ(change.view.workers[0].peer, PeerId{20});
  changes_.Enter(change.view, 0);
  EXPECT_EQ(changes_.Refusal({21})->exit_status, 0);  // It ended as requested.
}

TEST_F(MemberChangesTest, AJobThatStandsThoughNewcomersAreMissingGoesOn) {
  ScaleRequest request;
  request.servers = 2;
  ASSERT_TRUE(changes_.OnRequest({50}, request, 0).accepted);
  rendezvous_.Admit({13}, RequestOf(Role::kServer, "s3"), 0);
  stand_.quiet = true;
  EXPECT_EQ(changes_.Next(stand_, 0).what, Do::kGoOn);
  stand_.quiet = false;
  const MemberStep step = changes_.Next(stand_, 1001);
  EXPECT_EQ(step.what, Do::kNothing);
  EXPECT_THAT(step.gone, ElementsAre(HasSubstr("came to join the job and went silent again")));
}

TEST_F(MemberChangesTest, ANewcomerThatGoesSilentBeforeTheJobIsQuietIsNotTakenIn) {
  ScaleRequest request;
  request.servers = 1;
  ASSERT_TRUE(changes_.OnRequest({50}, request, 0).accepted);
  rendezvous_.Admit({13}, RequestOf(Role::kServer, "s3"), 0);
  EXPECT_EQ(changes_.Next(stand_, 0).what, Do::kAskForQuiet);
  stand_.quiet = true;
  const MemberStep step = changes_.Next(stand_, 1001);
  EXPECT_EQ(step.what, Do::kGoOn);
  EXPECT_THAT(step.gone, ElementsAre(HasSubstr("came to join the job and went silent again")));
  rendezvous_.Admit({14}, RequestOf(Role::kServer, "s4"), 1001);
  const MemberStep change = changes_.Next(stand_, 1001);
  ASSERT_EQ(change.what, Do::kChange);
  EXPECT_EQ(change.view.servers[3].peer, PeerId{14});
}

TEST_F(MemberChangesTest, RowsThatWereLostOnTheirWayNeedARestart) {
  stand_.needs_restart = true;
  const MemberStep back = changes_.Next(stand_, 700);
  ASSERT_EQ(back.what, Do::kGoBack);
  EXPECT_EQ(back.num_lost, 0u);
  EXPECT_EQ(back.stood_since, 700);
}

TEST_F(MemberCopiesTest, OthersThatHoldTheRowsGoOnAtOnce) {
  const AfterLoss after = changes_.Lose({{11}}, stand_, 1500);
  ASSERT_TRUE(after.view);
  EXPECT_EQ(after.view->restarts, 0u);
  ASSERT_EQ(after.promoted.size(), 1u);
  EXPECT_EQ(after.promoted[0].group.value, 1u);
  EXPECT_EQ(after.promoted[0].from, "server 1 (s1)");
  EXPECT_EQ(after.promoted[0].to, "server 2 (s2)");
  EXPECT_THAT(after.notices[0], HasSubstr("server 2 (s2) goes on with group 1; no step is lost"));
  EXPECT_EQ(after.notices.size(), 3u);  // And two groups without a copy.
  EXPECT_FALSE(changes_.recovery().under_way());
}

TEST_F(MemberCopiesTest, RowsThatAreOnTheirWayAreLostWithTheirServer) {
  stand_.moving = true;
  EXPECT_FALSE(changes_.Lose({{11}}, stand_, 1500).view);
  EXPECT_TRUE(changes_.recovery().under_way());
}

TEST_F(MemberCopiesTest, WhereNobodyComesThoseThatAreLeftMakeTheCopies) {
  changes_.Enter(*changes_.Lose({{11}}, stand_, 1000).view, 1000);
  changes_.SeekServerForCopies(1000);
  EXPECT_EQ(changes_.copies_missing_since(), 1000);
  EXPECT_EQ(changes_.Next(stand_, 60999).what, Do::kNothing);
  EXPECT_EQ(changes_.Next(stand_, 61000).what, Do::kAskForQuiet);
  stand_.quiet = true;
  const MemberStep change = changes_.Next(stand_, 61000);
  ASSERT_EQ(change.what, Do::kChange);
  EXPECT_THAT(MissingCopies(change.view, 1), IsEmpty());
  EXPECT_EQ(change.view.servers.size(), 3u);  // Three groups in two processes.
}

TEST(MemberChanges, BeforeTheFirstViewWhoCannotGoOnGivesItsPlaceBack) {
  Rendezvous rendezvous(ClusterOf(1, 2));
  MemberChanges changes(JobOf(0, DenseExchange::kServers), rendezvous, false);
  rendezvous.Admit({20}, RequestOf(Role::kWorker, "w0"), 0);
  EXPECT_TRUE(changes.Knows({20}));
  const MemberChanges::GivenUp given_up = changes.GiveUp({20}, "no memory", 2, {});
  EXPECT_EQ(given_up.notice, "worker (w0) cannot go on: no memory; its place is free again");
  EXPECT_FALSE(given_up.end);
  EXPECT_FALSE(changes.Knows({20}));
  rendezvous.Admit({21}, RequestOf(Role::kWorker, "w1"), 0);
  EXPECT_EQ(changes.GiveUp({21}, "no data", 2, {}).end->message, "worker (w1): no data");
}

}  // namespace
}  // namespace hdps
