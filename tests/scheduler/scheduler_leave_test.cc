// Tests members and schedulers that are told to leave alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/job/spec/cluster_spec.h"
#include "common/protocol/manifest.h"
#include "common/protocol/status_messages.h"
#include "tests/scheduler/scheduler_node_fixture.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr TimeMs kPatienceMs = 25'000;

class SchedulerLeaveTest : public SchedulerNodeTest {
 protected:
  SchedulerLeaveTest() { options_.steps_per_epoch = 100; }
  void StartAndReach(Clock clock) {
    Start();
    ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= clock; }));
  }
  MembershipClient& client(const std::string& name) { return cluster_->member(name).client; }
  void LetLeave(const std::string& name) {
    client(name).RequestLeave("SIGTERM", kPatienceMs);
    ASSERT_TRUE(cluster_->RunUntil([&] { return client(name).ended(); }));
  }
};

TEST_F(SchedulerLeaveTest, TheJobIsSavedThenTheMemberIsLetGo) {
  StartAndReach(13);
  LetLeave("worker b");
  EXPECT_EQ(client("worker b").exit_status(), 3);
  EXPECT_EQ(client("worker b").reason(), "left the job as it was told to; nothing is lost with it");
  EXPECT_TRUE(cluster_->Noticed("worker 1 (worker b) leaves: SIGTERM"));
  EXPECT_GE(FindCheckpoint(*files_, "out/checkpoint")->manifest.clock, 13);
  cluster_->Add(Role::kWorker, "worker c", 1);
  ExpectDone();
  EXPECT_THAT(cluster_->summary(),
              AllOf(HasSubstr("\"leaves\": 1"), HasSubstr("\"steps_again\": 0"),
                    HasSubstr("\"failures_survived\": 0")));
}

TEST_F(SchedulerLeaveTest, LeavesAtOnePlaceWithoutProgressAreNoFailures) {
  StartAndReach(13);
  std::string here = "worker b";
  for (const char* next : {"worker c", "worker d", "worker e", "worker f"}) {
    LetLeave(here);
    ScriptedMember& member = cluster_->Add(Role::kWorker, next, 1);
    here = next;
    ASSERT_TRUE(cluster_->RunUntil([&] { return member.client.view() != nullptr; }));
  }
  ExpectDone();
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"leaves\": 4"));
}

TEST_F(SchedulerLeaveTest, WhoAskTogetherLeaveAtOneStep) {
  StartAndReach(13);
  for (const char* name : {"server a", "worker a", "worker b"}) {
    client(name).RequestLeave("SIGTERM", kPatienceMs);
  }
  ASSERT_TRUE(cluster_->RunUntil([&] {
    return client("server a").ended() && client("worker a").ended() && client("worker b").ended();
  }));
  cluster_->Add(Role::kServer, "server c", 0);
  cluster_->Add(Role::kWorker, "worker c", 0);
  cluster_->Add(Role::kWorker, "worker d", 1);
  ExpectDone();
  EXPECT_THAT(cluster_->summary(),
              AllOf(HasSubstr("\"leaves\": 3"), HasSubstr("\"steps_again\": 0")));
}

TEST_F(SchedulerLeaveTest, AStopOfTheJobWins) {
  StartAndReach(13);
  client("worker b").RequestLeave("SIGTERM", kPatienceMs);
  node().RequestStop("told to");
  ExpectDone();
  EXPECT_THAT(cluster_->summary(),
              AllOf(HasSubstr("\"leaves\": 0"), HasSubstr("\"stopped_at\": ")));
  ASSERT_TRUE(cluster_->RunUntil([&] { return client("worker b").ended(); }));
  EXPECT_EQ(client("worker b").exit_status(), 0);
}

// The member waits for a round that cannot end, because another worker answers nothing.
TEST_F(SchedulerLeaveTest, TheStatusNamesWhoLeavesAndWhoGoesInVainIsLost) {
  options_.job.cluster.replace_after_s = 3000;
  StartAndReach(13);
  cluster_->member("worker a").mute = true;
  client("worker b").RequestLeave("SIGTERM", 2000);
  for (int turn = 0; turn < 5; ++turn) cluster_->Turn();
  node().OnFrame({77}, EncodeMessage(StatusRequest{}));
  std::string state, trouble;
  for (const Outgoing& out : node().TakeOutput().frames) {
    if (out.to != PeerId{77}) continue;
    StatusReply reply;
    ASSERT_TRUE(DecodeMessage(out.frame, &reply).ok());
    state = reply.state;
    for (const MemberStatus& member : reply.members) trouble += member.trouble;
  }
  EXPECT_THAT(state, HasSubstr("worker 1 (worker b) leaves: SIGTERM"));
  EXPECT_EQ(trouble, "it leaves: SIGTERM");
  ASSERT_TRUE(cluster_->RunUntil([&] { return client("worker b").ended(); }));
  EXPECT_EQ(client("worker b").exit_status(), 3);
  EXPECT_TRUE(cluster_->Noticed("and it could not hand over"));
  cluster_->member("worker a").mute = false;
  cluster_->Add(Role::kWorker, "worker c", 1);
  ExpectDone();
  EXPECT_THAT(cluster_->summary(),
              AllOf(HasSubstr("\"leaves\": 1"), Not(HasSubstr("\"steps_again\": 0,"))));
}

// Its machine may be another one: what it has written last is all that it knew.
TEST_F(SchedulerLeaveTest, TheSchedulerLeavesAndTheNextOneGoesOnAnywhere) {
  StartAndReach(13);
  node().RequestLeave("SIGTERM", kPatienceMs);
  EXPECT_TRUE(node().done());
  EXPECT_EQ(node().exit_status(), 3);
  EXPECT_THAT(node().exit_reason(), HasSubstr("left: SIGTERM; the state is written"));
  cluster_->boot = "two";
  cluster_->StartScheduler();
  ExpectDone();
  EXPECT_THAT(cluster_->summary(),
              AllOf(HasSubstr("\"leaves\": 1"), HasSubstr("\"steps_again\": 0"),
                    HasSubstr("\"failures_survived\": 0")));
}

TEST_F(SchedulerLeaveTest, ASchedulerThatIsToldToStopDoesNotLeave) {
  StartAndReach(13);
  node().RequestStop("told to");
  node().RequestLeave("SIGTERM", kPatienceMs);
  ExpectDone();
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"stopped_at\": "));
}

}  // namespace
}  // namespace hdps
