// Tests PsClient: repeats, duplicates, deadlines, views and the window of pushes.
#include "worker/exchange/ps_client.h"

#include <memory>
#include <string>
#include <vector>

#include "common/protocol/activity.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/message_kind.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/view.h"
#include "gmock/gmock.h"

namespace hdps {
namespace {

using testing::HasSubstr;

constexpr PeerId kSelf{77};

std::shared_ptr<const View> ViewOf(uint64_t view, std::vector<uint64_t> server_peers) {
  auto made = std::make_shared<View>();
  made->view = ViewId{view};
  for (uint32_t s = 0; s < server_peers.size(); ++s) {
    made->servers.push_back({PeerId{server_peers[s]}, s, "ipc:///tmp/s" + std::to_string(s)});
  }
  return made;
}

PsClientOptions Options() {
  return {.self = kSelf,
          .request_retry_ms = 100,
          .request_timeout_s = 10,
          .pushes_in_flight_max = 2,
          .requests_max = 8};
}

ServerRequest Advance(uint32_t server) {
  return {ServerId{server}, EncodeMessage(AdvanceRequest{5})};
}
ServerRequest Push(uint32_t server, uint64_t sequence) {
  PushRequest push;
  push.sequence = Sequence{sequence};
  return {ServerId{server}, EncodeMessage(push)};
}
PushAck AckOf(Code code) { return {{}, code, ""}; }

template <typename Message>
Frame Reply(const Outgoing& request, const Message& message) {
  Frame frame = EncodeMessage(message);
  frame.header.request_id = request.frame.header.request_id;
  return frame;
}

class PsClientTest : public testing::Test {
 protected:
  PsClientTest() : client_(Options()) {
    client_.OnTick(1000);
    client_.OnView(ViewOf(1, {10, 11}));
  }
  PsClient client_;
};

TEST_F(PsClientTest, GathersRepliesInTheOrderOfTheRequests) {
  client_.Start(Ticket{1}, {Advance(1), Advance(0)});
  const std::vector<Outgoing> sent = client_.TakeOutgoing();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].to, PeerId{11});
  EXPECT_EQ(sent[1].to, PeerId{10});
  EXPECT_EQ(sent[0].frame.header.sender, kSelf.value);
  EXPECT_EQ(sent[0].frame.header.view, 1u);
  EXPECT_NE(sent[0].frame.header.request_id, sent[1].frame.header.request_id);
  EXPECT_TRUE(client_.OnFrame(sent[1].to, Reply(sent[1], AdvanceAck{1})));
  EXPECT_TRUE(client_.TakeResults().empty());
  EXPECT_TRUE(client_.OnFrame(sent[0].to, Reply(sent[0], AdvanceAck{2})));
  const std::vector<TicketResult> results = client_.TakeResults();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].ticket, Ticket{1});
  EXPECT_TRUE(results[0].status.ok());
  AdvanceAck first, second;
  ASSERT_TRUE(DecodeMessage(results[0].replies[0], &first).ok());
  ASSERT_TRUE(DecodeMessage(results[0].replies[1], &second).ok());
  EXPECT_EQ(first.clock, 2);
  EXPECT_EQ(second.clock, 1);
  EXPECT_EQ(client_.outstanding(), 0u);
}

TEST_F(PsClientTest, TellsWhichServersOweAnAnswerAndSinceWhen) {
  EXPECT_TRUE(client_.Unanswered().empty());
  client_.Start(Ticket{1}, {Advance(1)});
  client_.OnTick(1300);
  client_.Start(Ticket{2}, {Advance(0), Advance(1)});
  client_.OnTick(1500);
  EXPECT_EQ(client_.Unanswered(), (std::vector<Awaited>{{{10}, 200}, {{11}, 500}}));
  const std::vector<Outgoing> sent = client_.TakeOutgoing();
  EXPECT_TRUE(client_.OnFrame({11}, Reply(sent[0], AdvanceAck{1})));
  EXPECT_EQ(client_.Unanswered(), (std::vector<Awaited>{{{10}, 200}, {{11}, 200}}));
  client_.CancelAll();
  EXPECT_TRUE(client_.Unanswered().empty());
}

TEST_F(PsClientTest, RepeatsUnderTheSameIdAndBacksOff) {
  client_.Start(Ticket{1}, {Advance(0)});
  const uint64_t id = client_.TakeOutgoing().at(0).frame.header.request_id;
  std::vector<TimeMs> repeats;
  for (TimeMs now = 1000; now < 4000; now += 10) {
    client_.OnTick(now);
    for (const Outgoing& out : client_.TakeOutgoing()) {
      EXPECT_EQ(out.frame.header.request_id, id);
      repeats.push_back(now - 1000);
    }
  }
  EXPECT_EQ(repeats, (std::vector<TimeMs>{100, 300, 700, 1500, 2300}));
  EXPECT_EQ(client_.counters().repeats, 5u);
}

TEST_F(PsClientTest, IgnoresWhatAnswersNothing) {
  client_.Start(Ticket{1}, {Advance(0)});
  const Outgoing sent = client_.TakeOutgoing().at(0);
  EXPECT_TRUE(client_.OnFrame(sent.to, Reply(sent, StoreAck{})));        // A reply of another kind.
  EXPECT_TRUE(client_.OnFrame(PeerId{11}, Reply(sent, AdvanceAck{5})));  // From another server.
  EXPECT_TRUE(client_.OnFrame(sent.to, EncodeMessage(AdvanceAck{5})));   // A reply with another id.
  EXPECT_FALSE(client_.OnFrame(sent.to, Reply(sent, HeartbeatAck{ViewId{1}})));  // Is not a reply.
  Frame broken = Reply(sent, AdvanceAck{5});
  broken.envelope = Buffer();
  EXPECT_TRUE(client_.OnFrame(sent.to, broken));
  EXPECT_TRUE(client_.TakeResults().empty());
  EXPECT_TRUE(client_.OnFrame(sent.to, Reply(sent, AdvanceAck{5})));
  EXPECT_TRUE(client_.OnFrame(sent.to, Reply(sent, AdvanceAck{5})));  // The same reply again.
  EXPECT_EQ(client_.TakeResults().size(), 1u);
  EXPECT_EQ(client_.counters().replies, 1u);
  EXPECT_EQ(client_.counters().replies_ignored, 5u);
}

TEST_F(PsClientTest, ADeadlineNamesTheServerTheRequestAndTheTime) {
  client_.Start(Ticket{1}, {Advance(0), Advance(1)});
  const std::vector<Outgoing> sent = client_.TakeOutgoing();
  client_.OnFrame(sent[0].to, Reply(sent[0], AdvanceAck{5}));
  client_.OnTick(90'000, /*deadlines_stand=*/true);
  client_.OnTick(99'999);
  EXPECT_TRUE(client_.TakeResults().empty());
  client_.OnTick(100'000);
  const std::vector<TicketResult> results = client_.TakeResults();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].status.code(), Code::kTimeout);
  EXPECT_THAT(results[0].status.message(),
              testing::AllOf(HasSubstr("server 1 (ipc:///tmp/s1)"), HasSubstr("99 s"),
                             HasSubstr(MessageKindName(MessageKind::kAdvanceRequest))));
  EXPECT_EQ(client_.outstanding(), 0u);
  client_.OnFrame(sent[1].to, Reply(sent[1], AdvanceAck{5}));  // The reply comes too late.
  EXPECT_TRUE(client_.TakeResults().empty());
}

TEST_F(PsClientTest, ARequestForAServerThatIsGoneAsksToBeSplitAgain) {
  client_.OnView(ViewOf(2, {10}));
  client_.Start(Ticket{1}, {Advance(0), Advance(1)}, {Advance(0)});
  EXPECT_TRUE(client_.TakeOutgoing().empty());
  const std::vector<TicketResult> results = client_.TakeResults();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].status.code(), Code::kStaleView);
  EXPECT_THAT(results[0].status.message(), HasSubstr("view 2 has 1 servers"));
  EXPECT_EQ(client_.outstanding(), 0u);
}

TEST_F(PsClientTest, APostponedRequestIsSentAgainInTheNextView) {
  const PushAck postponed = AckOf(Code::kStaleView);
  client_.Start(Ticket{1}, {Push(1, 0)});
  const Outgoing sent = client_.TakeOutgoing().at(0);
  client_.OnFrame(sent.to, Reply(sent, postponed));
  EXPECT_TRUE(client_.TakeResults().empty());
  EXPECT_EQ(client_.counters().postponed, 1u);
  client_.OnView(ViewOf(2, {10, 99}));
  const Outgoing again = client_.TakeOutgoing().at(0);
  EXPECT_EQ(again.to, PeerId{99});
  EXPECT_EQ(again.frame.header.view, 2u);
  EXPECT_EQ(again.frame.header.request_id, sent.frame.header.request_id);
  client_.OnFrame(PeerId{11}, Reply(sent, PushAck{}));  // The replaced server is ignored.
  EXPECT_TRUE(client_.TakeResults().empty());
  client_.OnFrame(PeerId{99}, Reply(again, PushAck{}));
  EXPECT_EQ(client_.TakeResults().size(), 1u);
}

TEST_F(PsClientTest, WhoIsNotReadyYetIsAskedAgainSoonAndLessAndLessOften) {
  const PushAck not_ready = AckOf(Code::kUnavailable);
  client_.Start(Ticket{1}, {Push(0, 0)});
  Outgoing sent = client_.TakeOutgoing().at(0);
  std::vector<TimeMs> repeats;
  for (TimeMs now = 1000; now < 1500; ++now) {
    client_.OnTick(now);
    for (Outgoing& out : client_.TakeOutgoing()) {
      repeats.push_back(now - 1000);
      sent = std::move(out);
    }
    if (now == 1000 || (!repeats.empty() && repeats.back() == now - 1000)) {
      client_.OnFrame(sent.to, Reply(sent, not_ready));
    }
  }
  EXPECT_EQ(repeats, (std::vector<TimeMs>{10, 30, 70, 150, 250, 350, 450}));
}

TEST_F(PsClientTest, WhatFollowsATicketIsSentWhenAllBeforeItIsAcknowledged) {
  client_.Start(Ticket{3}, {Push(0, 0)});  // Nothing follows this push alone.
  client_.Start(Ticket{1}, {Push(0, 1)}, {Advance(0), Advance(1)});
  client_.Start(Ticket{2}, {Push(1, 1)}, {Advance(1)});
  const std::vector<Outgoing> pushes = client_.TakeOutgoing();
  for (const size_t last : {2, 1, 0}) {
    EXPECT_TRUE(client_.TakeOutgoing().empty());  // The first is missing.
    client_.OnFrame(pushes[last].to, Reply(pushes[last], PushAck{}));
  }
  const std::vector<Outgoing> advances = client_.TakeOutgoing();
  ASSERT_EQ(advances.size(), 3u);
  EXPECT_TRUE(advances[0].to == PeerId{10} && advances[2].to == PeerId{11});
  EXPECT_EQ(client_.TakeResults().size(), 3u);
  for (const Outgoing& out : advances) client_.OnFrame(out.to, Reply(out, AdvanceAck{}));
  EXPECT_TRUE(client_.TakeResults().empty());  // No request waits for those.
  EXPECT_EQ(client_.outstanding(), 0u);
}

TEST_F(PsClientTest, NothingFollowsARefusal) {
  const PushAck refused = AckOf(Code::kInvalidArgument);
  client_.Start(Ticket{1}, {Push(0, 0)}, {Advance(0)});
  client_.Start(Ticket{2}, {Push(0, 1)}, {Advance(0)});
  const std::vector<Outgoing> pushes = client_.TakeOutgoing();
  client_.OnFrame(pushes[0].to, Reply(pushes[0], refused));
  client_.OnFrame(pushes[1].to, Reply(pushes[1], PushAck{}));
  EXPECT_TRUE(client_.TakeOutgoing().empty());
  EXPECT_EQ(client_.TakeResults().size(), 2u);
}

TEST_F(PsClientTest, AnUnknownKeyListIsSentAgainWithItsKeys) {
  PushRequest whole;
  whole.list = 5;
  whole.num_examples = 9;
  ServerRequest request = Push(0, 0);
  request.whole = EncodeMessage(whole);
  client_.Start(Ticket{1}, {request});
  const Outgoing named = client_.TakeOutgoing().at(0);
  const PushAck unknown = AckOf(Code::kNotFound);
  client_.OnFrame(named.to, Reply(named, unknown));
  const std::vector<Outgoing> again = client_.TakeOutgoing();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].frame.header.request_id, named.frame.header.request_id);
  PushRequest sent;
  ASSERT_TRUE(DecodeMessage(again[0].frame, &sent).ok());
  EXPECT_EQ(sent.num_examples, 9u);
  EXPECT_EQ(client_.counters().lists_unknown, 1u);
  client_.OnFrame(named.to, Reply(named, unknown));  // Refuses a repeat of the first frame.
  EXPECT_TRUE(client_.TakeResults().empty());
  client_.OnFrame(named.to, Reply(named, PushAck{}));
  EXPECT_EQ(client_.TakeResults().size(), 1u);
}

TEST_F(PsClientTest, ACancelledTicketComesOutOnceAndIsNotRepeated) {
  client_.Start(Ticket{1}, {Advance(0), Advance(1)});
  const std::vector<Outgoing> sent = client_.TakeOutgoing();
  client_.Cancel(Ticket{1});
  client_.Cancel(Ticket{1});
  const std::vector<TicketResult> results = client_.TakeResults();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].status.code(), Code::kCancelled);
  client_.OnFrame(sent[0].to, Reply(sent[0], AdvanceAck{}));
  client_.OnTick(5000);
  EXPECT_TRUE(client_.TakeOutgoing().empty());
  EXPECT_TRUE(client_.TakeResults().empty());
}

TEST_F(PsClientTest, OtherErrorsAreTheCallersToJudge) {
  PullReply refused;
  refused.code = Code::kInvalidArgument;
  refused.message = "no such table";
  client_.Start(Ticket{1}, {{ServerId{0}, EncodeMessage(PullRequest{})}});
  const Outgoing sent = client_.TakeOutgoing().at(0);
  client_.OnFrame(sent.to, Reply(sent, refused));
  const std::vector<TicketResult> results = client_.TakeResults();
  ASSERT_EQ(results.size(), 1u);
  PullReply reply;
  ASSERT_TRUE(DecodeMessage(results[0].replies[0], &reply).ok());
  EXPECT_EQ(reply.message, "no such table");
}

TEST_F(PsClientTest, PushesStayWithinTheWindowOfTheOldest) {
  for (uint64_t n = 0; n < 4; ++n) client_.Start(Ticket{n}, {Push(0, n)});
  client_.Start(Ticket{9}, {Push(1, 0)});  // Another server has its own window.
  const std::vector<Outgoing> sent = client_.TakeOutgoing();
  ASSERT_EQ(sent.size(), 3u);
  client_.OnTick(1100);
  EXPECT_EQ(client_.TakeOutgoing().size(), 3u);  // Repeats; the held ones stay held.
  // The second is acknowledged, the first is not: the window does not move.
  client_.OnFrame(sent[1].to, Reply(sent[1], PushAck{}));
  EXPECT_TRUE(client_.TakeOutgoing().empty());
  client_.OnFrame(sent[0].to, Reply(sent[0], PushAck{}));
  const std::vector<Outgoing> next = client_.TakeOutgoing();
  ASSERT_EQ(next.size(), 2u);
  PushRequest push;
  ASSERT_TRUE(DecodeMessage(next[0].frame, &push).ok());
  EXPECT_EQ(push.sequence, Sequence{2});
}

TEST_F(PsClientTest, OutstandingRequestsAreBounded) {
  for (uint64_t n = 0; n < 8; ++n) client_.Start(Ticket{n}, {Advance(0)});
  EXPECT_TRUE(client_.TakeResults().empty());
  client_.Start(Ticket{8}, {Advance(0)});
  const std::vector<TicketResult> results = client_.TakeResults();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].status.code(), Code::kResourceExhausted);
  EXPECT_EQ(client_.outstanding(), 8u);
}

TEST_F(PsClientTest, ATicketWithoutRequestsSucceedsAtOnce) {
  client_.Start(Ticket{1}, {});
  const std::vector<TicketResult> results = client_.TakeResults();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_TRUE(results[0].status.ok());
}

// ---- Servers that say nothing.

class ProbingPsClientTest : public testing::Test {
 protected:
  ProbingPsClientTest()
      : client_([] {
          PsClientOptions options = Options();
          options.probe_ms = 100;
          options.dial_anew_ms = 600;
          return options;
        }()) {
    client_.OnTick(now_);
    client_.OnView(ViewOf(1, {10, 11}));
  }
  // Lets time pass; server 10 answers, and 11 does not.
  void Pass(TimeMs ms) {
    for (const TimeMs end = now_ + ms; now_ < end;) {
      client_.OnTick(now_ += 10);
      for (const Outgoing& sent : client_.TakeOutgoing()) {
        if (sent.frame.header.kind == static_cast<uint16_t>(MessageKind::kProbe)) ++probes_;
        if (sent.to == PeerId{10}) client_.OnFrame(sent.to, EncodeMessage(ProbeAck()));
      }
    }
  }
  std::vector<std::pair<uint64_t, TimeMs>> Silent() const {
    std::vector<std::pair<uint64_t, TimeMs>> silent;
    for (const SilentServer& server : client_.SilentFor(1000)) {
      silent.emplace_back(server.peer.value, server.for_ms);
    }
    return silent;
  }

  TimeMs now_ = 1000;
  int probes_ = 0;
  PsClient client_;
};

TEST_F(ProbingPsClientTest, AServerThatAnswersNothingIsSilent) {
  Pass(1000);
  EXPECT_TRUE(Silent().empty());
  Pass(10);
  EXPECT_EQ(Silent(), (std::vector<std::pair<uint64_t, TimeMs>>{{11, 1010}}));
  EXPECT_EQ(probes_, 20);  // One per server every 100 ms.
  // Any message counts, even a late one.
  client_.OnFrame({11}, EncodeMessage(AdvanceAck{1}));
  EXPECT_TRUE(Silent().empty());
}

TEST_F(ProbingPsClientTest, AServerThatAnswersNothingIsDialedAnewOnceAndAskedAgain) {
  client_.Start(Ticket{1}, {Advance(1)});
  client_.TakeOutgoing();
  Pass(590);
  EXPECT_TRUE(client_.TakeDials().empty());
  client_.OnTick(now_ += 10);
  const std::vector<Dial> dials = client_.TakeDials();
  ASSERT_TRUE(dials.size() == 1 && dials[0].peer == PeerId{11} && dials[0].anew);
  EXPECT_EQ(std::ranges::count(client_.TakeOutgoing(), PeerId{11}, &Outgoing::to), 2);
  Pass(2000);
  client_.OnFrame({11}, EncodeMessage(ProbeAck()));
  EXPECT_TRUE(client_.TakeDials().empty());
  Pass(600);
  EXPECT_EQ(client_.TakeDials().size(), 1u) << "it was heard meanwhile";
}

TEST_F(ProbingPsClientTest, ThisProcessOwnStandstillIsNobodysSilence) {
  Pass(500);
  client_.OnTick(now_ += 5000);
  EXPECT_TRUE(Silent().empty());
  Pass(500);
  EXPECT_TRUE(Silent().empty());
  Pass(20);
  EXPECT_EQ(Silent().size(), 1u);
}

TEST_F(ProbingPsClientTest, OfAnotherViewNothingIsKnownYet) {
  Pass(2000);
  EXPECT_EQ(Silent().size(), 1u);
  client_.OnView(ViewOf(2, {10, 12}));
  EXPECT_TRUE(Silent().empty());
}

}  // namespace
}  // namespace hdps
