// Tests members that fail by themselves, are cut off though they send heartbeats, or wait for
// something.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/protocol/board_messages.h"
#include "common/protocol/message_frames.h"
#include "scheduler/members/cut_links.h"
#include "tests/scheduler/scheduler_node_fixture.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class MemberFailureTest : public SchedulerNodeTest {
 protected:
  MemberFailureTest() {
    options_.job.checkpoint.every_steps = 4;
    options_.job.cluster.replace_after_s = 3000;
  }
  // The job is at step 6, two behind a checkpoint.
  void Train() {
    Start();
    ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 6; }));
  }
  bool RunUntilNoticed(const std::string& part) {
    return cluster_->RunUntil([&] { return cluster_->Noticed(part); });
  }
};

TEST_F(MemberFailureTest, AServerThatFailsByItselfIsReplacedAndTheJobGoesOn) {
  Train();
  cluster_->member("server a").client.FailAlone("spilled rows: Input/output error");
  cluster_->Add(Role::kServer, "server b");
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed(
      "server 0 (server a) is lost: spilled rows: Input/output error. The job stands"));
  EXPECT_THAT(cluster_->transcript(),
              HasSubstr("server b: load out/checkpoint/step_0000000004 at 4\n"));
  EXPECT_THAT(cluster_->summary(),
              AllOf(HasSubstr("\"failures_survived\": 1"), HasSubstr("\"steps\": 20")));
}

TEST_F(MemberFailureTest, NobodyWhoTakesItsPlaceEndsTheJobWithTheCause) {
  options_.job.cluster.replace_after_s = 1;
  Train();
  cluster_->member("server a").client.FailAlone("spilled rows: Input/output error");
  ExpectFailed(3);
  EXPECT_THAT(node().exit_reason(),
              AllOf(HasSubstr("server 0 (server a) lost (spilled rows: Input/output error)"),
                    HasSubstr("step 4")));
}

// Each process in the place fails before the job gets further than before, so another would fail
// too.
TEST_F(MemberFailureTest, ACrashLoopEndsTheJobWithItsFirstCause) {
  Train();
  for (const char* name : {"server a", "server b", "server c"}) {
    ScriptedMember& server = cluster_->member(name);
    server.client.FailAlone(std::string("no room in ") + name);
    if (name == std::string("server c")) break;
    const std::string next = name == std::string("server a") ? "server b" : "server c";
    cluster_->Add(Role::kServer, next);
    const std::string loads = next + ": load";
    ASSERT_TRUE(cluster_->RunUntil(
        [&] { return cluster_->transcript().find(loads) != std::string::npos; }));
  }
  ExpectFailed(3);
  EXPECT_THAT(node().exit_reason(),
              AllOf(HasSubstr("server 0 has failed 3 times without a step of progress between"),
                    HasSubstr("server 0 (server a): no room in server a"), HasSubstr("step 4")));
}

TEST_F(MemberFailureTest, FailuresWithStepsBetweenAreNoLoop) {
  Start();
  Clock clock = 0;
  for (const char* name : {"server a", "server b", "server c", "server d"}) {
    clock += 4;
    ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= clock; }))
        << node().exit_reason();
    cluster_->member(name).client.FailAlone("no room");
    cluster_->Add(Role::kServer, std::string("server ") + static_cast<char>(name[7] + 1));
    // The workers' progress is reported in the next heartbeats.
    ASSERT_TRUE(RunUntilNoticed("0 (" + std::string(name) + ") is lost"));
  }
  ExpectDone();
}

TEST_F(MemberFailureTest, AFailureBeforeTheClusterIsCompleteFreesThePlace) {
  options_.with_members = false;
  options_.num_workers = 1;
  Start();
  ScriptedMember& worker = cluster_->Add(Role::kWorker, "worker a");
  for (int turn = 0; turn < 3; ++turn) cluster_->Turn();
  node().OnFrame(worker.self, EncodeMessage(Abort{3, "no memory", true}));
  EXPECT_TRUE(cluster_->Noticed("worker (worker a) cannot go on: no memory"));
  worker.cut_off = true;
  cluster_->Add(Role::kWorker, "worker b");
  cluster_->Add(Role::kServer, "server a");
  ExpectDone();
}

TEST_F(MemberFailureTest, WhereNobodyStartsMembersAgainAFailureEndsTheJob) {
  options_.members_return = false;
  Train();
  cluster_->member("server a").client.FailAlone("no room");
  ExpectFailed(3);
  EXPECT_THAT(node().exit_reason(), HasSubstr("server 0 (server a): no room"));
  EXPECT_FALSE(cluster_->Noticed("is lost"));
}

// Its disk fails while it loads: this counts as its own failure. The others' answers do not end the
// phase without it.
TEST_F(MemberFailureTest, ACommandThatOneProcessCouldNotCarryOutIsItsLoss) {
  Train();
  cluster_->answer = [](ScriptedMember& member, const Command& command) {
    std::optional<CommandDone> done;
    if (command.command != CommandKind::kEvaluate || member.called != "worker a") return done;
    done.emplace();
    done->code = Code::kIoError;
    done->message = "cannot read eval.csv: Input/output error";
    return done;
  };
  ASSERT_TRUE(RunUntilNoticed("worker 0 (worker a) is lost: cannot read eval.csv"));
  EXPECT_FALSE(cluster_->Noticed("AUC"));
  cluster_->Add(Role::kWorker, "worker c");
  ExpectDone();
  // It is told that the job continues without it.
  EXPECT_TRUE(cluster_->member("worker a").client.ended());
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"failures_survived\": 1"));
}

TEST_F(MemberFailureTest, DataThatAMemberFindsDamagedEndsTheJobWhereNobodyReadsIt) {
  options_.job.cluster.replace_after_s = 2;
  Train();
  cluster_->member("worker a").client.Fail(3, "train.csv.gz: damaged");
  ExpectFailed(3);
  EXPECT_THAT(node().exit_reason(), HasSubstr("worker 0 (worker a): train.csv.gz: damaged"));
}

// ---- A member's word costs that member.

class MembersWordTest : public MemberFailureTest {
 protected:
  // Expects that a message of `worker a` at step 6 makes it lost, and the job continues without it.
  void ExpectItAloneIsLost(const Frame& said, const std::string& why) {
    Train();
    node().OnFrame(cluster_->member("worker a").self, said);
    cluster_->Add(Role::kWorker, "worker c", 0);
    ExpectDone();
    EXPECT_TRUE(cluster_->Noticed("worker 0 (worker a) is lost: " + why));
    EXPECT_THAT(cluster_->summary(),
                AllOf(HasSubstr("\"failures_survived\": 1"), HasSubstr("\"steps\": 20")));
  }
};

TEST_F(MembersWordTest, AnAbortOfAnyStatus) {
  for (const int32_t status : {0, 2, 3, 255}) {
    files_ = NewMemoryFileSystem();
    ExpectItAloneIsLost(EncodeMessage(Abort{status, "data.csv:7"}),
                        status == 0 ? "it gives up with status 0" : "data.csv:7");
  }
}

TEST_F(MembersWordTest, AHeartbeatBehindWhatItWasToldToTrain) {
  Heartbeat heartbeat;
  heartbeat.view = {1};
  heartbeat.number = 1000;
  heartbeat.clock = (Clock{1} << 62) + 5;
  ExpectItAloneIsLost(EncodeMessage(heartbeat), "it says that it has finished step 46116860");
}

TEST_F(MembersWordTest, AnAnswerWithAnError) {
  bool said = false;
  cluster_.reset();
  Start();
  cluster_->answer = [&](ScriptedMember& member,
                         const Command& command) -> std::optional<CommandDone> {
    if (said || member.called != "worker a" || command.command != CommandKind::kEvaluate) return {};
    said = true;
    CommandDone done;
    done.code = Code::kCorruption;
    done.message = "eval.csv: damaged";
    return done;
  };
  ASSERT_TRUE(RunUntilNoticed("worker 0 (worker a) is lost: eval.csv: damaged"));
  cluster_->Add(Role::kWorker, "worker c", 0);
  ExpectDone();
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"steps\": 20"));
}

TEST_F(MemberFailureTest, NoRowGrowsOldWhileAPlaceIsEmpty) {
  options_.job.tables.resize(1);
  options_.job.tables[0].policy.evict_after_seconds = 4;
  options_.steps_per_epoch = 40;
  Start();
  // A time is noted each half second, and the job trains for less than two.
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 60; }));
  cluster_->member("worker b").cut_off = true;
  ASSERT_TRUE(RunUntilNoticed("is lost"));
  cluster_->RunUntil([] { return false; }, 100'000);
  cluster_->Add(Role::kWorker, "worker c", 1);
  ExpectDone();
  EXPECT_THAT(cluster_->transcript(), Not(HasSubstr("evict")));
}

// Each asks again and again, and would otherwise take a scheduler that says nothing for gone.
TEST_F(MemberFailureTest, TheFirstOfTwoReplacementsWaitsForTheSecond) {
  options_.job.cluster.rendezvous_timeout_s = 5;
  Train();
  cluster_->member("worker a").cut_off = cluster_->member("worker b").cut_off = true;
  cluster_->Add(Role::kWorker, "worker c", 0);
  cluster_->RunUntil([] { return false; }, 30'000);
  EXPECT_FALSE(cluster_->member("worker c").client.ended());
  cluster_->Add(Role::kWorker, "worker d", 1);
  ExpectDone();
}

TEST_F(MembersWordTest, PutsThatTheBoardHasNoRoomFor) {
  Train();
  const PeerId worker = cluster_->member("worker a").self;
  const std::string value(60'000, 'x');
  for (int i = 0; i < 100; ++i) {
    node().OnFrame(worker, EncodeMessage(KvPut{"key" + std::to_string(i), value}));
  }
  cluster_->Add(Role::kWorker, "worker c", 0);
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("worker 0 (worker a) is lost: it has put more on the board"));
}

TEST_F(MemberFailureTest, AMistakeThatTwoInOnePlaceFindEndsTheJob) {
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 3; }));
  cluster_->member("worker b").client.Fail(2, "data.csv:7:3: 'x'");
  const ScriptedMember& next = cluster_->Add(Role::kWorker, "worker c", 1);
  ASSERT_TRUE(cluster_->RunUntil([&] { return next.clock >= 1; })) << "a word costs its member";
  cluster_->member("worker c").client.Fail(2, "data.csv:7:3: 'x'");
  ExpectFailed(2);
  EXPECT_EQ(node().exit_reason(), "worker 1 (worker b): data.csv:7:3: 'x'");
  EXPECT_EQ(cluster_->member("server a").client.exit_status(), 2);
}

// ---- Cut in one direction.

TEST_F(MemberFailureTest, WhoBeatsButHearsNothingIsLost) {
  Train();
  ScriptedMember& deaf = cluster_->member("worker b");
  deaf.deaf = true;
  const TimeMs since = cluster_->now;
  cluster_->Add(Role::kWorker, "worker c");
  ASSERT_TRUE(RunUntilNoticed("worker 1 (worker b) is lost: it is heard, but has heard nothing"));
  // Counted from the last answer that it received: two heartbeats after the silence at most.
  EXPECT_LE(cluster_->now - since, TimeMs{options_.job.cluster.dead_after_ms} +
                                       2 * options_.job.cluster.heartbeat_ms + 40);
  ExpectDone();
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"failures_survived\": 1"));
}

TEST_F(MemberFailureTest, WhoHearsAgainHasItsPlaceBack) {
  Train();
  cluster_->member("worker b").deaf = true;
  ASSERT_TRUE(RunUntilNoticed("worker 1 (worker b) is lost"));
  // It is heard all the time, which does not make it a member again.
  for (int turn = 0; turn < 50; ++turn) cluster_->Turn();
  EXPECT_FALSE(cluster_->Noticed("has its place back"));
  cluster_->member("worker b").deaf = false;
  ASSERT_TRUE(RunUntilNoticed("worker 1 (worker b) is heard again and has its place back"));
  ExpectDone();
}

TEST_F(MemberFailureTest, WhoNeverHearsItsFirstViewIsLost) {
  options_.with_members = false;
  options_.num_workers = 1;
  Start();
  cluster_->Add(Role::kServer, "server a");
  cluster_->Add(Role::kWorker, "worker a").deaf = true;
  ASSERT_TRUE(RunUntilNoticed("worker 0 (worker a) is lost: it is heard, but has heard nothing"));
}

// A scheduler that stood still has answered no member, so none counts as deaf.
TEST_F(MemberFailureTest, TheSchedulersOwnStandstillMakesNobodyDeaf) {
  Train();
  ScriptedMember& worker = cluster_->member("worker b");
  worker.deaf = true;  // The last answer before that is lost.
  for (int turn = 0; turn < 25; ++turn) cluster_->Turn();
  cluster_->StandStill(5 * TimeMs{options_.job.cluster.dead_after_ms});
  worker.deaf = false;
  ExpectDone();
  EXPECT_FALSE(cluster_->Noticed("is lost"));
}

TEST_F(MemberFailureTest, AServerThatNoWorkerHearsIsLostAndTold) {
  Train();
  const PeerId server = cluster_->member("server a").self;
  for (const char* name : {"worker a", "worker b"}) {
    cluster_->member(name).client.ReportSilent({{server, 1500}});
  }
  ASSERT_TRUE(RunUntilNoticed("server 0 (server a) is lost: 2 workers have heard nothing of it"));
  cluster_->Add(Role::kServer, "server b");
  ExpectDone();
  EXPECT_TRUE(cluster_->member("server a").client.ended());
  EXPECT_EQ(cluster_->member("server a").client.exit_status(), 3);
}

// ---- Told.

TEST_F(MemberFailureTest, WhatHoldsAMemberUpIsSaidOnceAndWhenItIsOver) {
  Train();
  MembershipClient& server = cluster_->member("server a").client;
  const TimeMs since = cluster_->now;
  server.ReportTrouble("no space for spilled rows");
  ASSERT_TRUE(RunUntilNoticed("server 0 (server a) waits: no space for spilled rows"));
  EXPECT_LE(cluster_->now - since, 1000);
  for (int turn = 0; turn < 20; ++turn) cluster_->Turn();
  EXPECT_EQ(std::ranges::count_if(cluster_->notices,
                                  [](const std::string& line) {
                                    return line.find("waits: no space") != std::string::npos;
                                  }),
            1);
  server.ReportTrouble("");
  ASSERT_TRUE(RunUntilNoticed("server 0 (server a) goes on"));
  ExpectDone();
}

// ---- Which member is cut off.

constexpr TimeMs kDead = 3000;
const std::vector<PeerId> kServers = {{10}, {11}};

std::string CutIn(const std::vector<LinkReport>& reports,
                  const std::vector<PeerId>& servers = kServers) {
  std::string text;
  for (const CutLink& cut : FindCutLinks(reports, servers, kDead)) {
    text += (cut.is_worker ? "worker " : "server ") + std::to_string(cut.peer.value) + " by " +
            std::to_string(cut.links) + " for " + std::to_string(cut.for_ms) + "; ";
  }
  return text;
}

TEST(CutLinks, AServerThatTwoOrAllWorkersDoNotHear) {
  EXPECT_EQ(CutIn({{{20}, {}}, {{21}, {}}}), "");
  EXPECT_EQ(CutIn({{{20}, {{{11}, 3500}}}, {{21}, {{{11}, 3200}}}, {{22}, {}}}),
            "server 11 by 2 for 3200; ");
  EXPECT_EQ(CutIn({{{20}, {{{11}, 3500}}}}), "server 11 by 1 for 3500; ");
  EXPECT_EQ(CutIn({{{20}, {{{10}, 3500}}}}, {{10}}), "server 10 by 1 for 3500; ");
}

TEST(CutLinks, OneLinkAmongOthersIsNobodysLoss) {
  EXPECT_EQ(CutIn({{{20}, {{{11}, 9000}}}, {{21}, {}}}), "");
  // Not long enough, or about a server that is gone.
  EXPECT_EQ(CutIn({{{20}, {{{11}, 3000}}}, {{21}, {{{11}, 2000}}}}), "");
  EXPECT_EQ(CutIn({{{20}, {{{12}, 3500}}}, {{21}, {{{12}, 3500}}}}), "");
}

TEST(CutLinks, AWorkerThatAloneHearsNoServer) {
  const std::vector<SilentServer> both = {{{10}, 4100}, {{11}, 4200}};
  EXPECT_EQ(CutIn({{{20}, both}, {{21}, {}}}), "worker 20 by 2 for 4100; ");
  EXPECT_EQ(CutIn({{{20}, both}}), "worker 20 by 2 for 4100; ");
  // The others' heartbeats with the same report may be on their way.
  EXPECT_EQ(CutIn({{{20}, {{{10}, 3900}, {{11}, 4200}}}, {{21}, {}}}), "");
  EXPECT_EQ(CutIn({{{20}, both}, {{21}, both}}),
            "server 10 by 2 for 4100; server 11 by 2 for 4200; ");
}

}  // namespace
}  // namespace hdps
