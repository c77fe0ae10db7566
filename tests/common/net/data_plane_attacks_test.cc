// Attacks the data plane of jobs with keys, from a proxy in the middle and from strangers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "common/net/zmq/data_session.h"
#include "common/net/zmq/parts.h"
#include "tests/common/net/data_plane_of_a_job.h"

namespace hdps {
namespace {

using Message = MessageProxy::Message;

struct Harm {
  const char* part;
  size_t index;  // Byte of the part, from the end; 0 is in the tag.
  size_t byte;
};

// Changes one bit of each part of a frame, in each direction.
TEST_F(DataPlaneOfAJob, ABitThatChangesOnTheWayIsNoticed) {
  constexpr Harm kHarms[] = {
      {"session of the tag", 0, 7}, {"counter", 0, 8},  {"tag", 0, 31},   {"section", 1, 500},
      {"another section", 2, 0},    {"envelope", 3, 0}, {"header", 4, 30}};
  struct Middle {
    std::atomic<const Harm*> harm = nullptr;
    std::atomic<bool> to_listener = false;
  };
  // Shared, because the proxy may call it until the fixture ends.
  const auto middle = std::make_shared<Middle>();
  ListenBehind([middle](bool to, Message message) -> std::vector<Message> {
    if (const Harm* now = middle->harm; now != nullptr && to == middle->to_listener) {
      message[message.size() - 1 - now->index][now->byte] ^= 4;
    }
    return {std::move(message)};
  });
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  ASSERT_TRUE(Talk(*worker));
  Settle(*worker, kWorkerPeer);
  testing::internal::CaptureStderr();
  const auto sound = [](uint64_t number, const Frame& like) {
    Frame frame = like;
    frame.header.request_id = number;
    frame.sections = {Filled(1, 1), Filled(5000, 2)};
    return frame;
  };
  uint64_t number = 0;
  for (const bool to : {true, false}) {
    Transport &sender = to ? *worker : *server_, &receiver = to ? *server_ : *worker;
    const PeerId peer = to ? kServerPeer : kWorkerPeer;
    const Frame like = to ? EncodeMessage(Probe()) : EncodeMessage(ProbeAck());
    middle->to_listener = to;
    for (const Harm& now : kHarms) {
      const uint64_t refused = receiver.counters().frames_refused;
      middle->harm = &now;
      sender.Send(peer, sound(++number, like));
      EXPECT_TRUE(Await(*worker, [&] { return receiver.counters().frames_refused > refused; }))
          << now.part;
      EXPECT_EQ(receiver.counters().frames_refused, refused + 1) << now.part;
      middle->harm = nullptr;
      sender.Send(peer, sound(++number, like));
      EXPECT_THAT(Heard(receiver, sender, 20), testing::ElementsAre(number)) << now.part;
    }
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(Count(log, "no valid seal"), 2u) << "once an end: " << log;
  std::printf(
      "[ measured ] data plane: a bit of each of %zu parts changed, each way: refused, "
      "counted, logged once an end\n",
      std::size(kHarms));
}

// ---- What is said.

// Returns what a proxy sees of a frame with these texts in its sections, in both directions.
std::string Overheard(Transport& listener, Transport& dialer, const MessageProxy& middle,
                      const std::vector<std::string>& texts) {
  Frame frame = EncodeMessage(Probe()), back = EncodeMessage(ProbeAck());
  for (const std::string& text : texts) {
    frame.sections.push_back(Buffer::CopyOf(std::as_bytes(std::span(text))));
  }
  back.sections = frame.sections;
  bool heard = false, answered = false;
  for (int turn = 0; turn < 400 && !answered; ++turn) {
    PeerId from;
    Frame got;
    dialer.Send(kServerPeer, frame);
    if (listener.Receive(10, &from, &got)) {
      heard = true;
      listener.Send(from, back);
    }
    answered = dialer.Receive(10, &from, &got) && heard;
  }
  EXPECT_TRUE(answered);
  return middle.overheard();
}

TEST_F(DataPlaneOfAJob, AnEavesdropperSeesNoRow) {
  const std::vector<std::string> texts = {"a short section, as keys of rows are",
                                          std::string(100'000, 'r') + "ow 17 of the table"};
  const std::string signs[] = {texts[0], "rrrrrrrr", "ow 17 of the table",
                               std::string("HDPS\4\0", 6)};
  const auto pass = [](bool, Message message) { return std::vector<Message>{std::move(message)}; };
  ListenBehind(pass);
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  const std::string encrypted = Overheard(*server_, *worker, *middle_, texts);
  EXPECT_GT(encrypted.size(), 200'000u) << "both ways went by the middle";
  for (const std::string& sign : signs) EXPECT_EQ(Count(encrypted, sign), 0u) << sign;
  // Whoever listens in where there are no keys sees all of them.
  const auto plain = NewTransport(kServerPeer, nullptr), other = NewTransport(kWorkerPeer, nullptr);
  const Result<std::string> address = plain->Listen("tcp://127.0.0.1:0");
  ASSERT_TRUE(address.ok());
  const MessageProxy middle(ParseAddress(*address)->port, pass);
  ASSERT_TRUE(other->Connect(kServerPeer, "tcp://127.0.0.1:" + std::to_string(middle.port())).ok());
  const std::string open = Overheard(*plain, *other, middle, texts);
  for (const std::string& sign : signs) EXPECT_GE(Count(open, sign), 2u) << sign;
}

// ---- Frames that were sent, and come in another way.

// Both ends of one session, and a frame that was encrypted by one of them.
struct SessionEnds {
  explicit SessionEnds(uint64_t session = 7)
      : grant{session, OwnAead(), SecretKey::Drawn(), SecretKey::Drawn()} {}
  static Message Parts(const std::vector<zmq::message_t>& parts) {
    Message copies;
    for (const zmq::message_t& part : parts) copies.push_back(part.to_string());
    return copies;
  }
  static bool Accepts(DataSession& end, const Message& message) {
    std::vector<zmq::message_t> parts;
    for (const std::string& part : message) parts.emplace_back(part.data(), part.size());
    return end.Decrypt(&parts, 0);
  }
  Message FromDialer(uint64_t number = 5) {
    std::vector<zmq::message_t> parts = PartsOf(Numbered(number), {});
    dialer.Encrypt(&parts);
    return Parts(parts);
  }
  SessionGrant grant;
  DataSession dialer = DataSession::OfDialer(grant), listener = DataSession::OfListener(grant);
};

TEST(SealedMessages, AreTakenAsTheyWereSentAndInNoOtherWay) {
  SessionEnds ends, others(8), same_number(7);
  const Message sent = ends.FromDialer(), next = ends.FromDialer(), last = ends.FromDialer();
  const Message of_others = others.FromDialer(), elsewhere = same_number.FromDialer();
  struct Attack {
    const char* name;
    std::function<void(Message&)> change;
  };
  const Attack attacks[] = {
      {"without its tag", [](Message& m) { m.pop_back(); }},
      {"its tag alone", [](Message& m) { m = {m.back()}; }},
      {"nothing", [](Message& m) { m = {}; }},
      {"without a part", [](Message& m) { m.erase(m.begin() + 2); }},
      {"with a part twice", [](Message& m) { m.insert(m.begin() + 2, m[2]); }},
      {"with an empty part more", [](Message& m) { m.insert(m.begin(), ""); }},
      {"parts swapped", [](Message& m) { std::swap(m[3], m[4]); }},
      {"a part cut", [](Message& m) { m[3].pop_back(); }},
      {"a part longer", [](Message& m) { m[3] += '\0'; }},
      {"a boundary moved", [](Message& m) { m[4] = m[3].back() + m[4], m[3].pop_back(); }},
      {"the tag of the next", [&](Message& m) { m.back() = next.back(); }},
      {"the parts of the next", [&](Message& m) { m = next, m.back() = sent.back(); }},
      {"another session's", [&](Message& m) { m = of_others; }},
      {"another session's under this one's number",
       [&](Message& m) { m = of_others, m.back().replace(0, 8, sent.back(), 0, 8); }},
      {"another listener's session of that number", [&](Message& m) { m = elsewhere; }}};
  for (const Attack& attack : attacks) {
    Message message = sent;
    attack.change(message);
    EXPECT_FALSE(SessionEnds::Accepts(ends.listener, message)) << attack.name;
  }
  EXPECT_FALSE(SessionEnds::Accepts(ends.dialer, sent)) << "reflected";
  EXPECT_TRUE(SessionEnds::Accepts(ends.listener, sent)) << "as it was sent";
  EXPECT_FALSE(SessionEnds::Accepts(ends.listener, sent)) << "repeated";
  EXPECT_TRUE(SessionEnds::Accepts(ends.listener, last));
  EXPECT_FALSE(SessionEnds::Accepts(ends.listener, next)) << "overtaken";
}

TEST(SealedMessages, LeaveTheFrameOfTheSenderAsItIs) {
  SessionEnds ends;
  const Frame frame = Numbered(5), like = Numbered(5);
  std::vector<zmq::message_t> parts = PartsOf(frame, {}), again = PartsOf(frame, {});
  ends.dialer.Encrypt(&parts);
  EXPECT_TRUE(Same(frame, like)) << "its sections may be on their way elsewhere";
  ends.dialer.Encrypt(&again);
  EXPECT_NE(SessionEnds::Parts(parts), SessionEnds::Parts(again)) << "no two are encrypted alike";
}

TEST_F(DataPlaneOfAJob, WhatIsReflectedOrCutOnItsWayIsRefused) {
  struct Middle {
    std::atomic<int> trick = 0;
    std::mutex mutex;
    Message held;
  };
  const auto middle = std::make_shared<Middle>();
  ListenBehind([middle](bool to, Message message) -> std::vector<Message> {
    const std::lock_guard lock(middle->mutex);
    if (middle->trick == 1 && to) middle->held = message;
    // Replaces the message.
    if (middle->trick == 2 && !to) return {std::exchange(middle->held, {})};
    if (middle->trick == 3 && to) message.erase(message.end() - 2);
    return {std::move(message)};
  });
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  ASSERT_TRUE(Talk(*worker));
  Settle(*worker, kWorkerPeer);
  middle->trick = 1;
  worker->Send(kServerPeer, Numbered(1));
  EXPECT_THAT(Heard(*server_, *worker), testing::ElementsAre(1));
  middle->trick = 2;
  server_->Send(kWorkerPeer, Numbered(2, EncodeMessage(ProbeAck())));
  EXPECT_TRUE(Await(*worker, [&] { return worker->counters().frames_refused == 1; }));
  middle->trick = 3;
  worker->Send(kServerPeer, Numbered(5));
  EXPECT_TRUE(Await(*worker, [&] { return server_->counters().frames_refused == 1; }));
  middle->trick = 0;
  EXPECT_TRUE(Talk(*worker));
}

TEST_F(DataPlaneOfAJob, RepeatedAndOvertakenFramesAreRefused) {
  struct Middle {
    std::atomic<int> trick = 0;
    Message held;
  };
  // Shared, because the proxy may call it until the fixture ends.
  const auto middle = std::make_shared<Middle>();
  ListenBehind([middle](bool to, Message message) -> std::vector<Message> {
    if (!to || middle->trick == 0) return {std::move(message)};
    if (middle->trick == 1) return {message, message, message};
    if (middle->held.empty()) {
      middle->held = std::move(message);
      return {};
    }
    return {std::move(message), std::exchange(middle->held, {})};
  });
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  ASSERT_TRUE(Talk(*worker));
  Settle(*worker, kWorkerPeer);
  testing::internal::CaptureStderr();
  middle->trick = 1;
  worker->Send(kServerPeer, Numbered(1));
  EXPECT_THAT(Heard(*server_, *worker), testing::ElementsAre(1));
  EXPECT_EQ(server_->counters().frames_refused, 2u) << "repeats";
  middle->trick = 2;
  worker->Send(kServerPeer, Numbered(2));
  worker->Send(kServerPeer, Numbered(3));
  EXPECT_THAT(Heard(*server_, *worker), testing::ElementsAre(3));
  EXPECT_EQ(server_->counters().frames_refused, 3u) << "and one that was overtaken";
  middle->trick = 0;
  worker->Send(kServerPeer, Numbered(4));
  EXPECT_THAT(Heard(*server_, *worker), testing::ElementsAre(4));
  EXPECT_EQ(Count(testing::internal::GetCapturedStderr(), "refused a frame"), 1u);
}

TEST_F(DataPlaneOfAJob, ARecordedConnectionSaysNothingTwice) {
  ListenBehind([](bool, Message message) { return std::vector<Message>{std::move(message)}; });
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  for (uint64_t i = 1; i <= 5; ++i) worker->Send(kServerPeer, Numbered(i));
  size_t heard = 0;
  for (int turn = 0; turn < 1000 && heard < 5; ++turn) heard += Heard(*server_, *worker, 1).size();
  EXPECT_EQ(heard, 5u);
  const uint64_t received = server_->counters().frames_received;
  testing::internal::CaptureStderr();
  const RawPeer again("tcp://127.0.0.1:" + std::to_string(DataPort()));
  const std::string recorded = middle_->recorded();
  const size_t greeting = 64 + 2 + static_cast<uint8_t>(recorded[65]);
  again.Write(recorded.substr(0, greeting));
  AwaitGreeting(again, *worker);
  again.Write(recorded.substr(greeting));
  EXPECT_TRUE(Await(*worker, [&] { return server_->counters().frames_refused >= 5; }));
  EXPECT_EQ(server_->counters().frames_received, received);
  EXPECT_EQ(Count(testing::internal::GetCapturedStderr(), "refused a frame"), 1u);
  // It has not replaced the connection it was recorded from either.
  worker->Send(kServerPeer, Numbered(6));
  EXPECT_THAT(Heard(*server_, *worker), testing::ElementsAre(6));
  EXPECT_TRUE(Talk(*worker, 5));
}

TEST_F(DataPlaneOfAJob, ACutConnectionGoesOnWithItsSession) {
  ListenBehind([](bool, Message message) { return std::vector<Message>{std::move(message)}; });
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  for (int cut = 0; cut < 3; ++cut) {
    ASSERT_TRUE(Talk(*worker)) << cut;
    middle_->CutAll();
  }
  EXPECT_TRUE(Talk(*worker));
  EXPECT_EQ(server_->counters().connections_admitted, 1u);
  EXPECT_EQ(server_->counters().frames_refused, 0u);
}

TEST_F(DataPlaneOfAJob, AStrangerAtThePortForDataIsNotHeard) {
  Listen();
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  ASSERT_TRUE(Talk(*worker));
  Settle(*worker, kWorkerPeer);
  const uint64_t received = server_->counters().frames_received;
  testing::internal::CaptureStderr();
  Frame frame = EncodeMessage(Probe());
  frame.header.sender = kWorkerPeer.value;
  ChecksumFrame(frame);
  std::list<RawPeer> strangers;
  for (const std::string& id : {RoutingIdFor(kWorkerPeer), std::string("s-12345"), std::string()}) {
    RawPeer& stranger = strangers.emplace_back("tcp://127.0.0.1:" + std::to_string(DataPort()));
    stranger.Greet(id);
    AwaitGreeting(stranger, *worker);
    stranger.SendFrame(frame);
  }
  EXPECT_TRUE(Await(*worker, [&] { return server_->counters().frames_refused >= 3; }));
  EXPECT_EQ(server_->counters().frames_received, received);
  EXPECT_EQ(Count(testing::internal::GetCapturedStderr(), "shows no session"), 1u);
  EXPECT_TRUE(Talk(*worker)) << "others are served";
}

}  // namespace
}  // namespace hdps
