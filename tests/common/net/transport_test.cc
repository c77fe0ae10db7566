// Tests the promises of a transport on every implementation.
#include "common/net/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "common/base/bounded_queue.h"
#include "common/base/hash.h"
#include "common/platform/executor.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "tests/common/net/named_peers.h"

namespace hdps {
namespace {

constexpr PeerId kListener{100};
const PeerId kDialer = NamedPeer(200);

// Returns a frame identified by its request id, with one section of `bytes`.
Frame NumberedFrame(uint64_t number, const Buffer& bytes = Buffer()) {
  Frame frame = EncodeMessage(AdvanceRequest{static_cast<Clock>(number)});
  frame.header.request_id = number;
  frame.sections.push_back(bytes);
  return frame;
}

// Returns the next frame; fails the test after far longer than it can take.
Frame Await(Transport& transport, PeerId* from) {
  Frame frame;
  for (int i = 0; i < 200; ++i) {
    if (transport.Receive(100, from, &frame)) return frame;
  }
  ADD_FAILURE() << "no frame came";
  return frame;
}

class TransportTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Transport> NewTransport(PeerId self, uint32_t queue_frames_max = 1024) {
    TransportOptions options;
    options.self = NameOf(self);
    options.queue_frames_max = queue_frames_max;
    if (GetParam() != "shared") options.shared_bytes_per_peer = 0;
    return GetParam() == "inproc" ? NewInprocTransport(hub_, options) : NewZmqTransport(options);
  }
  // Returns an address to listen at; each name is another place.
  std::string AddressFor(const std::string& name) const {
    if (GetParam() == "tcp" || GetParam() == "shared") return "tcp://127.0.0.1:0";
    if (GetParam() == "inproc") return "inproc://" + name;
    return "ipc://" + testing::TempDir() + "/hdps_" + std::to_string(getpid()) + "_" + name;
  }
  std::string Listen(Transport& transport, const std::string& name = "a") const {
    Result<std::string> address = transport.Listen(AddressFor(name));
    EXPECT_TRUE(address.ok()) << address.status().message();
    return address.ok() ? *address : "";
  }

  std::shared_ptr<InprocHub> hub_ = NewInprocHub();
};

INSTANTIATE_TEST_SUITE_P(All, TransportTest, testing::Values("inproc", "tcp", "ipc", "shared"),
                         [](const auto& kind) { return kind.param; });

TEST_P(TransportTest, DeliversTheFrameThatWasSentAndTheAnswer) {
  auto listener = NewTransport(kListener), dialer = NewTransport(kDialer);
  ASSERT_TRUE(dialer->Connect(kListener, Listen(*listener)).ok());
  const Frame sent = [] {
    Frame frame = NumberedFrame(5, Buffer::CopyOf<Key>(std::vector<Key>{1, 2, 3}));
    frame.header.view = 9;
    return frame;
  }();
  dialer->Send(kListener, sent);
  PeerId from;
  const Frame got = Await(*listener, &from);
  EXPECT_EQ(from, kDialer);
  EXPECT_TRUE(CheckFrame(got).ok());
  Frame expected = sent;
  expected.header.sender = kDialer.value;
  expected.header.shared_sections = GetParam() == "inproc" ? 1 : 0;
  ChecksumFrame(expected);
  EXPECT_EQ(std::memcmp(&got.header, &expected.header, sizeof(FrameHeader)), 0);
  ASSERT_EQ(got.sections.size(), 1u);
  EXPECT_THAT(got.sections[0].As<Key>(), testing::ElementsAre(1, 2, 3));

  listener->Send(kDialer, NumberedFrame(6));
  EXPECT_EQ(Await(*dialer, &from).header.request_id, 6u);
  EXPECT_EQ(from, kListener);
  EXPECT_EQ(dialer->counters().frames_sent, 1u);
  EXPECT_EQ(dialer->counters().frames_received, 1u);
  EXPECT_EQ(listener->counters().bytes_received, dialer->counters().bytes_sent);
}

TEST_P(TransportTest, KeepsTheOrderBetweenTwoPeers) {
  auto listener = NewTransport(kListener), dialer = NewTransport(kDialer);
  ASSERT_TRUE(dialer->Connect(kListener, Listen(*listener)).ok());
  const Buffer large = Buffer::CopyOf(std::vector<std::byte>(5000, std::byte{7}));
  uint64_t sent = 0, received = 0;
  while (received < 3000) {
    for (int i = 0; i < 500; ++i, ++sent) {
      dialer->Send(kListener, NumberedFrame(sent, sent % 3 == 0 ? large : Buffer()));
    }
    for (int i = 0; i < 500; ++i, ++received) {
      PeerId from;
      ASSERT_EQ(Await(*listener, &from).header.request_id, received);
    }
  }
  EXPECT_EQ(dialer->counters().frames_dropped, 0u);
}

TEST_P(TransportTest, CarriesALargeFrameAligned) {
  auto listener = NewTransport(kListener), dialer = NewTransport(kDialer);
  ASSERT_TRUE(dialer->Connect(kListener, Listen(*listener)).ok());
  std::span<uint64_t> words;
  const Buffer large = Buffer::AllocateOf<uint64_t>(8u << 20, &words);  // 64 MiB
  for (size_t i = 0; i < words.size(); ++i) words[i] = MixBits(i);
  dialer->Send(kListener, NumberedFrame(1, large));
  PeerId from;
  const Frame got = Await(*listener, &from);
  ASSERT_EQ(got.sections.size(), 1u);
  ASSERT_EQ(got.sections[0].size(), large.size());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(got.sections[0].data()) % 8, 0u);
  EXPECT_EQ(std::memcmp(got.sections[0].data(), large.data(), large.size()), 0);
}

TEST_P(TransportTest, AlignsSectionsOfEverySize) {
  auto listener = NewTransport(kListener), dialer = NewTransport(kDialer);
  ASSERT_TRUE(dialer->Connect(kListener, Listen(*listener)).ok());
  for (const size_t size : {0, 1, 7, 8, 30, 33, 34, 100, 4095, 4096, 4097, 8191, 8192, 9000}) {
    Frame frame = NumberedFrame(size, Buffer::CopyOf(std::vector<std::byte>(size)));
    frame.sections.push_back(frame.sections[0]);
    dialer->Send(kListener, frame);
    PeerId from;
    const Frame got = Await(*listener, &from);
    ASSERT_EQ(got.sections.size(), 2u);
    for (const Buffer& section : got.sections) {
      EXPECT_EQ(section.size(), size);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(section.data()) % 8, 0u) << size;
    }
  }
}

TEST_P(TransportTest, AnswersEachOfManyPeers) {
  auto listener = NewTransport(kListener);
  const std::string address = Listen(*listener);
  std::vector<std::unique_ptr<Transport>> dialers;
  for (uint64_t i = 0; i < 24; ++i) {
    dialers.push_back(NewTransport(NamedPeer(1000 + i)));
    ASSERT_TRUE(dialers.back()->Connect(kListener, address).ok());
    dialers.back()->Send(kListener, NumberedFrame(i));
  }
  for (size_t i = 0; i < dialers.size(); ++i) {
    PeerId from;
    const Frame got = Await(*listener, &from);
    EXPECT_EQ(from, NamedPeer(1000 + got.header.request_id));
    listener->Send(from, NumberedFrame(got.header.request_id + 50));
  }
  for (uint64_t i = 0; i < dialers.size(); ++i) {
    PeerId from;
    EXPECT_EQ(Await(*dialers[i], &from).header.request_id, i + 50);
  }
}

TEST_P(TransportTest, SpeaksToManyListeners) {
  auto dialer = NewTransport(kDialer);
  std::vector<std::unique_ptr<Transport>> listeners;
  for (uint64_t i = 0; i < 8; ++i) {
    listeners.push_back(NewTransport({1000 + i}));
    ASSERT_TRUE(dialer->Connect({1000 + i}, Listen(*listeners[i], std::to_string(i))).ok());
    dialer->Send({1000 + i}, NumberedFrame(i));
  }
  for (uint64_t i = 0; i < listeners.size(); ++i) {
    PeerId from;
    EXPECT_EQ(Await(*listeners[i], &from).header.request_id, i);
    listeners[i]->Send(from, NumberedFrame(i));
  }
  std::vector<uint64_t> answers;
  for (uint64_t i = 0; i < listeners.size(); ++i) {
    PeerId from;
    answers.push_back(Await(*dialer, &from).header.request_id);
    EXPECT_EQ(from.value, 1000 + answers.back());
  }
  EXPECT_THAT(answers, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_P(TransportTest, DropsAndCountsWhatNobodyTakes) {
  auto listener = NewTransport(kListener), dialer = NewTransport(kDialer);
  listener->Send({77}, NumberedFrame(1));  // The transport does not listen yet.
  Listen(*listener);
  listener->Send({77}, NumberedFrame(1));
  dialer->Send({77}, NumberedFrame(1));
  EXPECT_EQ(listener->counters().frames_dropped, 2u);
  EXPECT_EQ(dialer->counters().frames_dropped, 1u);
  EXPECT_EQ(listener->counters().frames_sent, 0u);
}

TEST_P(TransportTest, NeverBlocksOnAFullQueue) {
  auto listener = NewTransport(kListener, 4), dialer = NewTransport(kDialer, 4);
  ASSERT_TRUE(dialer->Connect(kListener, Listen(*listener)).ok());
  const Buffer bytes = Buffer::CopyOf(std::vector<std::byte>(1 << 20));
  for (uint64_t i = 0; i < 200; ++i) dialer->Send(kListener, NumberedFrame(i, bytes));
  const TransportCounters counters = dialer->counters();
  EXPECT_GT(counters.frames_dropped, 0u);
  EXPECT_EQ(counters.frames_dropped + counters.frames_sent, 200u);
  // The frames that were taken arrive whole and in order.
  int64_t last = -1;
  for (uint64_t i = 0; i < counters.frames_sent; ++i) {
    PeerId from;
    const auto number = static_cast<int64_t>(Await(*listener, &from).header.request_id);
    EXPECT_GT(number, last);
    last = number;
  }
  EXPECT_EQ(listener->counters().frames_refused, 0u);
  // There is space again.
  dialer->Send(kListener, NumberedFrame(1000));
  PeerId from;
  EXPECT_EQ(Await(*listener, &from).header.request_id, 1000u);
}

TEST_P(TransportTest, WakesAReceiverThatWaits) {
  auto listener = NewTransport(kListener);
  Listen(*listener);
  // Only Wake() can end the loop's waits of ten minutes.
  int rounds = 0;
  BoundedQueue<int> seen(1);
  auto thread = StartThread("receiver", [&] {
    PeerId from;
    Frame frame;
    for (; rounds < 3; ++rounds) {
      EXPECT_FALSE(listener->Receive(600000, &from, &frame));
      seen.Push(rounds);
    }
  });
  for (int i = 0; i < 3; ++i) {
    listener->Wake();
    EXPECT_EQ(seen.Pop(), i);
  }
  thread->Join();
}

TEST_P(TransportTest, AWakeIsNotLost) {
  auto listener = NewTransport(kListener);
  Listen(*listener);
  listener->Wake();
  PeerId from;
  Frame frame;
  EXPECT_FALSE(listener->Receive(600000, &from, &frame));
  EXPECT_FALSE(listener->Receive(0, &from, &frame));
}

TEST_P(TransportTest, ANewcomerTakesOverThePlaceOfOneThatLeft) {
  auto dialer = NewTransport(kDialer);
  auto old_one = NewTransport(kListener);
  const std::string address = Listen(*old_one);
  ASSERT_TRUE(dialer->Connect(kListener, address).ok());
  dialer->Send(kListener, NumberedFrame(1));
  PeerId from;
  Await(*old_one, &from);
  old_one.reset();
  auto new_one = NewTransport({101});
  const Result<std::string> again = new_one->Listen(address);
  ASSERT_TRUE(again.ok()) << again.status().message();
  ASSERT_TRUE(dialer->Connect({101}, *again).ok());
  dialer->Send({101}, NumberedFrame(2));
  EXPECT_EQ(Await(*new_one, &from).header.request_id, 2u);
}

TEST_P(TransportTest, WhoHangsUpDialsAnewAndIsAnsweredThere) {
  auto listener = NewTransport(kListener), dialer = NewTransport(kDialer);
  const std::string address = Listen(*listener);
  for (uint64_t round = 0; round < 3; ++round) {
    ASSERT_TRUE(dialer->Connect(kListener, address).ok());
    dialer->Send(kListener, NumberedFrame(round));
    PeerId from;
    EXPECT_EQ(Await(*listener, &from).header.request_id, round);
    listener->Send(from, NumberedFrame(round + 50));
    EXPECT_EQ(Await(*dialer, &from).header.request_id, round + 50);
    dialer->HangUp(kListener);
    const uint64_t dropped = dialer->counters().frames_dropped;
    dialer->Send(kListener, NumberedFrame(9));
    EXPECT_EQ(dialer->counters().frames_dropped, dropped + 1);
  }
  EXPECT_EQ(listener->counters().frames_refused, 0u);
}

TEST_P(TransportTest, RefusesAnAddressInUse) {
  auto first = NewTransport(kListener), second = NewTransport({101});
  const std::string address = Listen(*first);
  const Result<std::string> taken = second->Listen(address);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(
      taken.status().message(),
      testing::AllOf(testing::HasSubstr(address), testing::ContainsRegex("is in use.*; choose")));
  // The first still works.
  auto dialer = NewTransport(kDialer);
  ASSERT_TRUE(dialer->Connect(kListener, address).ok());
  dialer->Send(kListener, NumberedFrame(3));
  PeerId from;
  EXPECT_EQ(Await(*first, &from).header.request_id, 3u);
}

TEST_P(TransportTest, RefusesMalformedAddresses) {
  auto transport = NewTransport(kListener);
  for (const char* address : {"", "tcp://", "tcp://127.0.0.1", "127.0.0.1:99999", "ipc://",
                              "http://127.0.0.1:80", "tcp://a b:1", "tcp://127.0.0.1:x"}) {
    EXPECT_EQ(transport->Listen(address).status().code(), Code::kInvalidArgument) << address;
    EXPECT_EQ(transport->Connect({1}, address).code(), Code::kInvalidArgument) << address;
  }
}

TEST_P(TransportTest, LeavesWithFramesUnread) {
  auto listener = NewTransport(kListener), dialer = NewTransport(kDialer);
  ASSERT_TRUE(dialer->Connect(kListener, Listen(*listener)).ok());
  for (uint64_t i = 0; i < 50; ++i) dialer->Send(kListener, NumberedFrame(i));
  PeerId from;
  Await(*listener, &from);
  listener.reset();
  dialer->Send(kListener, NumberedFrame(50));
}

}  // namespace
}  // namespace hdps
