// Tests joining, views, silence and the end, on the member's side.
#include "tests/common/protocol/membership_client_fixture.h"

namespace hdps {
namespace {

TEST_F(MembershipClientTest, JoinsUntilAnsweredThenBeats) {
  EXPECT_THAT(Said(), ElementsAre("dial 1"));
  TickUntil(0);
  EXPECT_THAT(Said(), ElementsAre("JoinRequest"));
  EXPECT_EQ(DecodedAs<JoinRequest>(last_frame_).job_digest, 99u);
  TickUntil(400);
  EXPECT_THAT(Said(), IsEmpty());
  TickUntil(1000);
  EXPECT_THAT(Said(), ElementsAre("JoinRequest", "JoinRequest"));
  EXPECT_EQ(client_.view(), nullptr);
  Hear(ViewNumber(7));
  ASSERT_NE(client_.view(), nullptr);
  EXPECT_EQ(client_.rank(), 1u);
  EXPECT_THAT(Said(), ElementsAre("dial 11", "dial 12", "dial 13"));
  Heartbeat progress;
  progress.clock = 3;
  client_.Report(progress);
  TickUntil(1600);
  EXPECT_THAT(Said(), ElementsAre("Heartbeat v7 c3", "Heartbeat v7 c3"));
  EXPECT_EQ(last_frame_.header.view, 7u);
}

TEST_F(MembershipClientTest, ViewsOnlyGrow) {
  Form();
  Hear(ViewNumber(9));
  EXPECT_EQ(client_.view()->view, ViewId{9});
  const auto held = client_.view();
  Hear(ViewNumber(8));
  Hear(ViewNumber(9));
  EXPECT_EQ(client_.view(), held);
}

TEST_F(MembershipClientTest, ASchedulerOfAnOlderReignIsRefusedAndCounted) {
  View newest = ViewNumber(7);
  newest.reign = 5;
  TickUntil(0);
  Hear(newest);
  View forged = ViewNumber(9);
  forged.reign = 4;
  Hear(forged);
  EXPECT_EQ(client_.view()->view, ViewId{7});
  Command command;
  command.id = {1};
  command.reign = 4;
  Hear(command);
  EXPECT_THAT(client_.TakeCommands(), IsEmpty());
  Hear(Abort{3, "gone", false, 4});
  EXPECT_FALSE(client_.ended());
  EXPECT_EQ(client_.refused_orders(), 3u);
  // A newer reign may number its view as an older one did.
  newest.reign = 6;
  newest.restarts = 1;
  Hear(newest);
  EXPECT_EQ(client_.view()->reign, 6u);
  EXPECT_EQ(client_.refused_orders(), 3u);
}

TEST_F(MembershipClientTest, WhoIsNotInTheNextViewIsHungUp) {
  for (const Role role : {Role::kWorker, Role::kServer}) {
    MembershipOptions options = Options();
    options.role = role;
    View view = ViewNumber(7);
    if (role == Role::kServer) options.identity.self = view.servers[0].peer;
    MembershipClient client(options);
    client.OnTick(0);
    client.OnFrame(kSchedulerPeer, EncodeMessage(view));
    EXPECT_THAT(client.TakeOutput().hang_ups, IsEmpty());
    const PeerId server = view.servers[1].peer, worker = view.workers[0].peer;
    view.view = {8};
    for (auto& [group, backup] : view.backups) {
      if (backup.peer == server) backup.peer = {1001};
    }
    view.servers[1].peer = {1001};
    view.workers[0].peer = {1002};
    client.OnFrame(kSchedulerPeer, EncodeMessage(view));
    ASSERT_EQ(client.view()->view, ViewId{8});
    EXPECT_THAT(client.TakeOutput().hang_ups, ElementsAre(server, worker));
  }
}

TEST_F(MembershipClientTest, AViewOfOthersIsNoMembership) {
  TickUntil(0);
  View others = ViewNumber(7);
  others.workers[1].peer = {1000};
  Hear(others);
  EXPECT_EQ(client_.view(), nullptr);
  EXPECT_FALSE(client_.ended());
  Hear(ViewNumber(8));
  others.view = {9};
  Hear(others);
  EXPECT_TRUE(client_.ended());
  EXPECT_EQ(client_.exit_status(), 3);
  EXPECT_THAT(client_.reason(), HasSubstr("view 9"));
}

TEST_F(MembershipClientTest, ARefusalEndsWithItsStatusAndReason) {
  TickUntil(0);
  Hear(JoinRefused{2, "there is no room for a fourth worker"});
  EXPECT_TRUE(client_.ended());
  EXPECT_EQ(client_.exit_status(), 2);
  EXPECT_EQ(client_.reason(), "there is no room for a fourth worker");
  Said();
  TickUntil(5000);
  EXPECT_THAT(Said(), IsEmpty());
}

TEST_F(MembershipClientTest, AnAbortEndsWithItsStatusAndReason) {
  Form();
  Hear(Abort{3, "server 1 is gone"});
  EXPECT_TRUE(client_.ended());
  EXPECT_EQ(client_.exit_status(), 3);
  EXPECT_EQ(client_.reason(), "server 1 is gone");
}

TEST_F(MembershipClientTest, HeartbeatsSayWhichAnswersHaveCome) {
  Form();
  TickUntil(600);
  Said();
  EXPECT_EQ(DecodedAs<Heartbeat>(last_frame_).number, 2u);
  EXPECT_EQ(DecodedAs<Heartbeat>(last_frame_).heard, 0u);
  Hear(HeartbeatAck{{7}, 2});
  Hear(HeartbeatAck{{7}, 1});   // Overtaken on the way.
  Hear(HeartbeatAck{{7}, 99});  // Answers nothing that was sent.
  client_.ReportTrouble("no space");
  client_.ReportSilent({{{11}, 3100}});
  TickUntil(1100);
  Said();
  const auto heartbeat = DecodedAs<Heartbeat>(last_frame_);
  EXPECT_EQ(heartbeat.number, 3u);
  EXPECT_EQ(heartbeat.heard, 2u);
  EXPECT_EQ(heartbeat.trouble, "no space");
  ASSERT_EQ(heartbeat.silent.size(), 1u);
  EXPECT_EQ(heartbeat.silent[0].peer, PeerId{11});
}

TEST_F(MembershipClientTest, FiguresAreReadWhenAHeartbeatIsSent) {
  uint64_t reads = 0;
  client_.ReportReadings([&reads] { return std::vector<uint64_t>{++reads, 7}; });
  Form();
  TickUntil(900);
  Said();
  EXPECT_EQ(DecodedAs<Heartbeat>(last_frame_).number, 2u);
  EXPECT_EQ(reads, 2u);  // Not once a tick.
  EXPECT_THAT(DecodedAs<Heartbeat>(last_frame_).readings, ElementsAre(2, 7));
}

TEST_F(MembershipClientTest, TheLastFiguresGoBeforeTheEnd) {
  client_.ReportReadings([] { return std::vector<uint64_t>{7}; });
  Form();
  TickUntil(600);
  Said();
  Command finish = CommandNumber(5, CommandKind::kFinish);
  finish.view = {7};
  Frame frame = EncodeMessage(finish);
  frame.header.view = 7;
  client_.OnFrame(kSchedulerPeer, frame);
  ASSERT_EQ(client_.TakeCommands().size(), 1u);
  client_.Answer(DoneNumber(5));
  const std::vector<std::string> said = Said();
  ASSERT_GE(said.size(), 2u);
  EXPECT_THAT(said[0], HasSubstr("v7 c0"));  // A heartbeat, though none was due.
  EXPECT_THAT(said[1], HasSubstr(" 5"));
}

TEST_F(MembershipClientTest, HeartbeatsSayInFewWordsWhatAMemberIsAt) {
  Form();
  Activity activity;
  activity.stage = "read";
  activity.subject = "a\nb" + std::string(5000, 'x');
  activity.wait_reason = WaitReason::kData;
  activity.for_ms = 12'000;
  activity.awaited.assign(10'000, {{11}, 3});
  client_.ReportActivity(activity);
  TickUntil(600);
  Said();
  const Activity said = DecodedAs<Heartbeat>(last_frame_).activity;
  EXPECT_EQ(said.stage, "read");
  EXPECT_EQ(said.subject.substr(0, 6), "a\\x0ab");
  EXPECT_LT(said.subject.size(), 2 * kSubjectBytesMax);
  EXPECT_EQ(said.wait_reason, WaitReason::kData);
  EXPECT_EQ(said.for_ms, 12'000);
  EXPECT_EQ(said.awaited.size(), kAwaitedMax);
}

TEST_F(MembershipClientTest, WhoFailsAloneSaysSo) {
  Form();
  client_.FailAlone("no space");
  Said();
  const auto last_words = DecodedAs<Abort>(last_frame_);
  EXPECT_TRUE(last_words.member_only);
  EXPECT_EQ(last_words.exit_status, 3);
  EXPECT_EQ(last_words.message, "no space");
}

TEST_F(MembershipClientTest, OnlyTheSchedulerSpeaksOfTheMembership) {
  Form();
  EXPECT_TRUE(client_.OnFrame({11}, EncodeMessage(Abort{3, "so there"})));
  EXPECT_FALSE(client_.ended());
  EXPECT_FALSE(client_.OnFrame({11}, EncodeMessage(AdvanceAck{3})));
}

TEST_F(MembershipClientTest, BrokenFramesAreDropped) {
  Form();
  Frame frame = EncodeMessage(Abort{3, "x"});
  frame.envelope = Buffer();
  EXPECT_TRUE(client_.OnFrame(kSchedulerPeer, frame));
  EXPECT_FALSE(client_.ended());
}

TEST_F(MembershipClientTest, EndsWhenTheSchedulerIsSilent) {
  Form();
  TickUntil(2000);
  Hear(HeartbeatAck{{7}});
  TickUntil(4900);
  EXPECT_FALSE(client_.ended());
  TickUntil(5200);
  EXPECT_TRUE(client_.ended());
  EXPECT_EQ(client_.exit_status(), 3);
  EXPECT_THAT(client_.reason(), HasSubstr("tcp://127.0.0.1:8118"));
  EXPECT_THAT(client_.reason(), HasSubstr("silent for 3"));
}

TEST(MembershipClient, DialsASilentSchedulerAnewLessAndLessOften) {
  MembershipOptions options;
  options.identity.self = kSelf;
  options.heartbeat_ms = 500;
  options.scheduler_timeout_ms = 20000;
  MembershipClient client(options);
  TimeMs now = 0;
  const auto dialed_anew_at = [&](TimeMs until) {
    std::vector<TimeMs> at;
    for (; now <= until; now += 100) {
      client.OnTick(now);
      for (const Dial& dial : client.TakeOutput().dials) {
        if (dial.peer == kSchedulerPeer && dial.anew) at.push_back(now);
      }
    }
    return at;
  };
  // Before the cluster has formed, no answers are due.
  EXPECT_THAT(dialed_anew_at(4900), IsEmpty());
  client.OnFrame(kSchedulerPeer, EncodeMessage(testing_samples::SampleView()));
  EXPECT_THAT(dialed_anew_at(18000),
              ElementsAre(4900 + 1500, 4900 + 3000, 4900 + 6000, 4900 + 12000));
  client.OnFrame(kSchedulerPeer, EncodeMessage(HeartbeatAck{{7}}));
  EXPECT_THAT(dialed_anew_at(20000), ElementsAre(18000 + 1500));
}

TEST_F(MembershipClientTest, ItsOwnStandstillIsNoSilence) {
  Form();
  TickUntil(300);
  now_ += 1000000;  // The process was stopped, and goes on.
  TickUntil(now_);
  EXPECT_FALSE(client_.ended());
}

TEST_F(MembershipClientTest, EndsWhenTheClusterDoesNotForm) {
  TickUntil(59900);
  EXPECT_FALSE(client_.ended());
  TickUntil(60100);
  EXPECT_TRUE(client_.ended());
  EXPECT_EQ(client_.exit_status(), 3);
  EXPECT_THAT(client_.reason(), HasSubstr("tcp://127.0.0.1:8118"));
  EXPECT_THAT(client_.reason(), HasSubstr("60 s"));
}

TEST_F(MembershipClientTest, FailureIsToldAFewTimesThenItIsOver) {
  Form();
  client_.Fail(2, "row 7 is bad");
  client_.Fail(3, "and so on");
  EXPECT_FALSE(client_.ended());
  Hear(Abort{3, "worker 1: row 7 is bad"});
  TickUntil(1000);
  EXPECT_TRUE(client_.ended());
  EXPECT_EQ(client_.exit_status(), 2);
  EXPECT_EQ(client_.reason(), "row 7 is bad");
  EXPECT_THAT(Said(), testing::AllOf(testing::Each("Abort 2"), testing::SizeIs(5)));
}

TEST_F(MembershipClientTest, AStopIsAskedForUntilTheSchedulerFinishes) {
  Form();
  client_.RequestStop("SIGTERM");
  client_.RequestStop("SIGTERM");
  EXPECT_THAT(Said(), ElementsAre("StopRequest"));
  TickUntil(500);
  EXPECT_THAT(Said(), ElementsAre("Heartbeat v7 c0", "StopRequest"));
  EXPECT_FALSE(client_.ended());
}

TEST_F(MembershipClientTest, AStopBeforeTheClusterHasFormedEnds) {
  TickUntil(0);
  Said();
  client_.RequestStop("SIGTERM");
  TickUntil(1000);
  EXPECT_THAT(Said(), testing::Each("StopRequest"));
  EXPECT_TRUE(client_.ended());
  EXPECT_EQ(client_.exit_status(), 0);
}

TEST_F(MembershipClientTest, ALeaveIsAskedForUntilTheSchedulerLetsItGo) {
  Form();
  client_.RequestLeave("SIGTERM", 25'000);
  client_.RequestStop("SIGTERM");
  EXPECT_THAT(Said(), ElementsAre("LeaveRequest"));
  TickUntil(500);
  EXPECT_THAT(Said(), ElementsAre("Heartbeat v7 c0", "LeaveRequest"));
  EXPECT_FALSE(DecodedAs<LeaveRequest>(last_frame_).goes);
  Hear(Abort{3, "left"});
  EXPECT_TRUE(client_.ended());
  EXPECT_EQ(client_.exit_status(), 3);
  EXPECT_EQ(client_.reason(), "left");
}

TEST_F(MembershipClientTest, WhoIsNotLetGoInTimeGoes) {
  Form();
  TickUntil(0);
  client_.RequestLeave("SIGTERM", 1000);
  TickUntil(1000);
  EXPECT_FALSE(client_.ended());
  Said();
  TickUntil(1600);
  EXPECT_THAT(Said(), testing::AllOf(testing::Each("LeaveRequest"), testing::SizeIs(5)));
  EXPECT_TRUE(DecodedAs<LeaveRequest>(last_frame_).goes);
  EXPECT_EQ(client_.exit_status(), 3);
  EXPECT_EQ(client_.reason(), "left after 1 s, before it could hand over: SIGTERM");
}

TEST_F(MembershipClientTest, ALeaveBeforeTheClusterHasFormedEnds) {
  TickUntil(0);
  Said();
  client_.RequestLeave("SIGTERM", 25'000);
  TickUntil(1000);
  EXPECT_THAT(Said(), testing::Each("LeaveRequest"));
  EXPECT_TRUE(client_.ended());
  EXPECT_EQ(client_.exit_status(), 3);
}

TEST_F(MembershipClientTest, PutsUntilAcknowledgedGetsUntilFound) {
  client_.Put({"rank0", "here"});
  client_.Get({"rank1"});
  Form();
  TickUntil(100);
  EXPECT_THAT(Said(), ElementsAre("Heartbeat v7 c0", "KvPut rank0=here", "KvGet rank1"));
  TickUntil(200);
  EXPECT_THAT(Said(), ElementsAre("KvPut rank0=here", "KvGet rank1"));
  Hear(KvValue{"rank0", true, "here"}, 1);
  Hear(KvValue{"rank1", false, ""}, 2);
  TickUntil(300);
  EXPECT_THAT(Said(), ElementsAre("KvGet rank1"));
  EXPECT_EQ(last_frame_.header.request_id, 2u);
  EXPECT_THAT(client_.TakeKvValues(), IsEmpty());
  Hear(KvValue{"rank1", true, "there"}, 2);
  Hear(KvValue{"rank1", true, "there"}, 2);
  const std::vector<KvValue> values = client_.TakeKvValues();
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values[0].value, "there");
  TickUntil(400);
  EXPECT_THAT(Said(), IsEmpty());
}

TEST_F(MembershipClientTest, AnswersSayWhetherAPlaceIsEmpty) {
  Form();
  EXPECT_FALSE(client_.place_empty());
  Hear(HeartbeatAck{.view = {7}, .place_empty = true});
  EXPECT_TRUE(client_.place_empty());
  Hear(HeartbeatAck{.view = {7}});
  EXPECT_FALSE(client_.place_empty());
}

TEST_F(MembershipClientTest, RequestsToTheBoardEndWhenWorkersMeetAnew) {
  View next = ViewNumber(8);
  const auto forget_in = [&](const char* what, auto change) {
    SCOPED_TRACE(what);
    client_.Get({"rank1"});
    TickUntil(now_);
    EXPECT_THAT(Said(), testing::Contains("KvGet rank1"));
    ++next.view.value;
    change();
    Hear(next);
    TickUntil(now_ + 200);
    return std::ranges::count(Said(), "KvGet rank1") == 0;
  };
  Form();
  EXPECT_FALSE(forget_in("a server is replaced", [&] { next.servers[0].peer = {1001}; }));
  EXPECT_TRUE(forget_in("a worker is replaced", [&] { next.workers[0].peer = {1002}; }));
  EXPECT_TRUE(forget_in("all go back to a checkpoint", [&] { ++next.restarts; }));
}

}  // namespace
}  // namespace hdps
