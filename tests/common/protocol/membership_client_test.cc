// A member and a scheduler that follows a script: what is said, tick by tick.
#include "common/protocol/membership_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/common/protocol/message_samples.h"

namespace hdps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_samples::FloatsOf;

constexpr PeerId kSelf{22};

template <typename Message>
Message DecodedAs(const Frame& frame) {
  Message message;
  const Status status = DecodeMessage(frame, &message);
  EXPECT_TRUE(status.ok()) << status.message();
  return message;
}

// One word or two for what a member says.
std::string Describe(const Frame& frame) {
  const auto kind = static_cast<MessageKind>(frame.header.kind);
  std::string text = MessageKindName(kind);
  if (kind == MessageKind::kHeartbeat) {
    const auto heartbeat = DecodedAs<Heartbeat>(frame);
    text += " v" + std::to_string(heartbeat.view.value) + " c" + std::to_string(heartbeat.clock);
  } else if (kind == MessageKind::kCommandDone) {
    text += " " + std::to_string(DecodedAs<CommandDone>(frame).id.value);
  } else if (kind == MessageKind::kKvPut) {
    text += " " + DecodedAs<KvPut>(frame).key + "=" + DecodedAs<KvPut>(frame).value;
  } else if (kind == MessageKind::kKvGet) {
    text += " " + DecodedAs<KvGet>(frame).key;
  } else if (kind == MessageKind::kAbort) {
    text += " " + std::to_string(DecodedAs<Abort>(frame).exit_status);
  }
  return text;
}

class MembershipClientTest : public testing::Test {
 protected:
  static MembershipOptions Options() {
    MembershipOptions options;
    options.role = Role::kWorker;
    options.identity.self = kSelf;
    options.identity.scheduler_address = "tcp://127.0.0.1:8118";
    options.heartbeat_ms = 500;
    options.scheduler_timeout_ms = 3000;
    options.rendezvous_timeout_s = 60;
    options.job_digest = 99;
    return options;
  }
  static View ViewNumber(uint64_t number) {
    View view = testing_samples::SampleView();
    view.view = {number};
    return view;
  }
  static Command CommandNumber(uint64_t id, CommandKind kind = CommandKind::kTrain) {
    Command command;
    command.id = {id};
    command.command = kind;
    return command;
  }
  static CommandDone DoneNumber(uint64_t id) {
    CommandDone done;
    done.id = {id};
    return done;
  }

  // What came out since the last call, in order; dials as "dial PEER".
  std::vector<std::string> Said() {
    std::vector<std::string> said;
    Output output = client_.TakeOutput();
    for (const Dial& dial : output.dials) said.push_back("dial " + std::to_string(dial.peer.value));
    for (const Outgoing& outgoing : output.frames) {
      EXPECT_EQ(outgoing.to, kSchedulerPeer);
      said.push_back(Describe(outgoing.frame));
      last_frame_ = outgoing.frame;
    }
    return said;
  }
  // Ticks every 100 ms up to and including `until`.
  void TickUntil(TimeMs until) {
    for (; now_ <= until; now_ += 100) client_.OnTick(now_);
  }
  template <typename Message>
  void Hear(const Message& message, uint64_t request_id = 0) {
    Frame frame = EncodeMessage(message);
    frame.header.request_id = request_id;
    if (client_.view() != nullptr) frame.header.view = client_.view()->view.value;
    EXPECT_TRUE(client_.OnFrame(kSchedulerPeer, frame));
  }
  void Form() {
    TickUntil(0);
    Hear(ViewNumber(7));
    Said();
  }
  std::vector<uint64_t> TakenIds() {
    std::vector<uint64_t> ids;
    for (const Command& command : client_.TakeCommands()) ids.push_back(command.id.value);
    return ids;
  }

  MembershipClient client_{Options()};
  TimeMs now_ = 0;
  Frame last_frame_;
};

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

TEST_F(MembershipClientTest, ItsOwnStandstillIsNoSilence) {
  Form();
  TickUntil(300);
  now_ += 1000000;  // Stopped, and continued.
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

TEST_F(MembershipClientTest, CarriesOutACommandOnceAndRepeatsItsAnswer) {
  Form();
  Hear(CommandNumber(1));
  Hear(CommandNumber(1));
  EXPECT_THAT(TakenIds(), ElementsAre(1));
  Hear(CommandNumber(1));
  EXPECT_THAT(TakenIds(), IsEmpty());
  EXPECT_THAT(Said(), IsEmpty());
  client_.Answer(DoneNumber(1));
  client_.Answer(DoneNumber(1));
  EXPECT_THAT(Said(), ElementsAre("CommandDone 1"));
  Hear(CommandNumber(1));
  Hear(CommandNumber(1));
  EXPECT_THAT(TakenIds(), IsEmpty());
  EXPECT_THAT(Said(), ElementsAre("CommandDone 1", "CommandDone 1"));
}

TEST_F(MembershipClientTest, CommandsComeInOrderAndLostOnesLater) {
  Form();
  Hear(CommandNumber(3));
  Hear(CommandNumber(2));
  EXPECT_THAT(TakenIds(), ElementsAre(2, 3));
  Hear(CommandNumber(1));
  EXPECT_THAT(TakenIds(), ElementsAre(1));
}

TEST_F(MembershipClientTest, ForgottenCommandsAreNeverCarriedOutAgain) {
  Form();
  for (uint64_t id = 1; id <= 200; ++id) {
    Hear(CommandNumber(id));
    EXPECT_THAT(TakenIds(), ElementsAre(id));
    client_.Answer(DoneNumber(id));
  }
  Said();
  for (uint64_t id = 1; id <= 200; ++id) Hear(CommandNumber(id));
  EXPECT_THAT(TakenIds(), IsEmpty());
  EXPECT_LE(Said().size(), 64u);
}

TEST_F(MembershipClientTest, ALongCommandOutlivesManyShortOnes) {
  Form();
  Hear(CommandNumber(1));
  for (uint64_t id = 2; id <= 200; ++id) {
    Hear(CommandNumber(id, CommandKind::kPause));
    client_.Answer(DoneNumber(id));
  }
  Said();
  client_.Answer(DoneNumber(1));
  EXPECT_THAT(Said(), ElementsAre("CommandDone 1"));
}

TEST_F(MembershipClientTest, OnlyTheNewestScoresAreKept) {
  Form();
  for (uint64_t id = 1; id <= 2; ++id) {
    Hear(CommandNumber(id, CommandKind::kEvaluate));
    CommandDone done = DoneNumber(id);
    done.scores = done.labels = FloatsOf(4);
    client_.Answer(done);
  }
  Said();
  Hear(CommandNumber(1, CommandKind::kEvaluate));
  EXPECT_THAT(Said(), IsEmpty());
  Hear(CommandNumber(2, CommandKind::kEvaluate));
  EXPECT_THAT(Said(), ElementsAre("CommandDone 2"));
  EXPECT_EQ(DecodedAs<CommandDone>(last_frame_).scores.size(), 16u);
}

TEST_F(MembershipClientTest, FinishIsAnsweredAFewTimesThenItIsOver) {
  Form();
  Hear(CommandNumber(1, CommandKind::kFinish));
  EXPECT_THAT(TakenIds(), ElementsAre(1));
  EXPECT_FALSE(client_.ended());
  client_.Answer(DoneNumber(1));
  TickUntil(1000);
  EXPECT_TRUE(client_.ended());
  EXPECT_EQ(client_.exit_status(), 0);
  EXPECT_THAT(Said(), testing::AllOf(testing::Each("CommandDone 1"), testing::SizeIs(5)));
  // And whoever asks again is answered again.
  Hear(CommandNumber(1, CommandKind::kFinish));
  EXPECT_THAT(Said(), ElementsAre("CommandDone 1"));
  // The scheduler's own end changes nothing any more.
  Hear(Abort{3, "late"});
  EXPECT_EQ(client_.exit_status(), 0);
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

}  // namespace
}  // namespace hdps
