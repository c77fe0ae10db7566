// The authenticated data plane under attack: by someone in the middle, and by strangers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <list>
#include <memory>

#include "tests/common/net/data_plane_of_a_job.h"

namespace hdps {
namespace {

using Message = MessageProxy::Message;

struct Harm {
  const char* part;
  size_t index;  // Of the part, from the end: 0 is the seal.
  size_t byte;
};

// Each way, one bit of each part of a frame.
TEST_F(DataPlaneOfAJob, ABitThatChangesOnTheWayIsNoticed) {
  constexpr Harm kHarms[] = {
      {"session of the seal", 0, 7}, {"counter", 0, 8},  {"tag", 0, 31},   {"section", 1, 500},
      {"another section", 2, 0},     {"envelope", 3, 0}, {"header", 4, 30}};
  struct Middle {
    std::atomic<const Harm*> harm = nullptr;
    std::atomic<bool> to_listener = false;
  };
  const auto middle = std::make_shared<Middle>();  // Which may be asked until the fixture ends.
  ListenBehind([middle](bool to, Message message) -> std::vector<Message> {
    if (const Harm* now = middle->harm; now != nullptr && to == middle->to_listener) {
      message[message.size() - 1 - now->index][now->byte] ^= 4;
    }
    return {std::move(message)};
  });
  const auto worker = Dial(kWorkerPeer, Folder(KeyRole::kWorker));
  ASSERT_TRUE(Talk(*worker));
  Heard(*server_, *worker, 10);  // What it said more than once.
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

TEST_F(DataPlaneOfAJob, RepeatedAndOvertakenFramesAreRefused) {
  struct Middle {
    std::atomic<int> trick = 0;
    Message held;
  };
  const auto middle = std::make_shared<Middle>();  // Which may be asked until the fixture ends.
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
  EXPECT_EQ(Heard(*server_, *worker, 100).size(), 5u);
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
  // Nor has it taken the place of the one it was recorded from.
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
  Heard(*server_, *worker, 10);  // What it said more than once.
  const uint64_t received = server_->counters().frames_received;
  testing::internal::CaptureStderr();
  Frame frame = EncodeMessage(Probe());
  frame.header.sender = kWorkerPeer.value;
  SealFrame(frame);
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
