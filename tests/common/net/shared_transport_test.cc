// Tests large sections between two transports on one machine: shared if both agree, otherwise sent
// in the frame; also full arenas, and peers that die, send false claims, or are on another machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <deque>

#include "common/base/hash.h"
#include "common/net/shared/shared_memory_links.h"
#include "common/net/transport.h"
#include "common/platform/process_watch.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "tests/common/net/zmq_peer.h"

namespace hdps {
namespace {

constexpr PeerId kListener{100};
const PeerId kDialer = NamedPeer(200);
constexpr size_t kSection = 200000;

TransportOptions OptionsFor(PeerId self, size_t shared_bytes) {
  TransportOptions options;
  options.self = NameOf(self);
  options.shared_bytes_per_peer = shared_bytes;
  return options;
}

Buffer SectionOf(uint64_t number, size_t bytes = kSection) {
  std::span<uint64_t> words;
  Buffer section = Buffer::AllocateOf<uint64_t>(bytes / sizeof(uint64_t), &words);
  for (size_t i = 0; i < words.size(); ++i) words[i] = MixBits(number + i);
  return section;
}

Frame FrameOf(uint64_t number, size_t bytes = kSection) {
  Frame frame = EncodeMessage(AdvanceRequest{static_cast<Clock>(number)});
  frame.header.request_id = number;
  frame.sections = {SectionOf(number, bytes)};
  return frame;
}

void ExpectFrame(const Frame& frame, uint64_t number) {
  EXPECT_EQ(frame.header.request_id, number);
  ASSERT_EQ(frame.sections.size(), 1u);
  const Buffer expected = SectionOf(number, frame.sections[0].size());
  EXPECT_EQ(std::memcmp(frame.sections[0].data(), expected.data(), expected.size()), 0) << number;
}

bool Await(Transport& transport, PeerId* from, Frame* frame) {
  for (int i = 0; i < 200; ++i) {
    if (transport.Receive(100, from, frame)) return true;
  }
  ADD_FAILURE() << "no frame came";
  return false;
}

class SharedTransportTest : public testing::Test {
 protected:
  void Open(size_t shared_by_dialer, size_t shared_by_listener = size_t{8} << 20) {
    listener_ = NewZmqTransport(OptionsFor(kListener, shared_by_listener));
    dialer_ = NewZmqTransport(OptionsFor(kDialer, shared_by_dialer));
    const Result<std::string> address = listener_->Listen("tcp://127.0.0.1:0");
    ASSERT_TRUE(address.ok()) << address.status().message();
    address_ = *address;
    ASSERT_TRUE(dialer_->Connect(kListener, address_).ok());
  }
  // Sends frame `number` from `from` to `to` and checks that it arrives.
  void Deliver(Transport& from, PeerId to_id, Transport& to, uint64_t number) {
    from.Send(to_id, FrameOf(number));
    PeerId sender;
    Frame frame;
    ASSERT_TRUE(Await(to, &sender, &frame));
    ExpectFrame(frame, number);
    // Processes the answer of `to` to an offer.
    EXPECT_FALSE(from.Receive(20, &sender, &frame));
  }

  // Delivers frames from number 0 on until one was shared, and returns how many that took. The
  // answer to an offer may take a while.
  uint64_t DeliverUntilShared(Transport& from, PeerId to_id, Transport& to) {
    constexpr uint64_t kFramesMax = 1000;
    const uint64_t before = from.counters().bytes_shared;
    for (uint64_t number = 0; number < kFramesMax; ++number) {
      Deliver(from, to_id, to, number);
      if (from.counters().bytes_shared > before) return number + 1;
    }
    ADD_FAILURE() << "nothing was shared";
    return kFramesMax;
  }

  std::unique_ptr<Transport> listener_, dialer_;
  std::string address_;
};

TEST_F(SharedTransportTest, SharesOnceTheOfferIsAnsweredBothWays) {
  Open(size_t{8} << 20);
  const uint64_t there = DeliverUntilShared(*dialer_, kListener, *listener_);
  const uint64_t back = DeliverUntilShared(*listener_, kDialer, *dialer_);
  for (uint64_t i = 0; i < 3; ++i) {
    Deliver(*dialer_, kListener, *listener_, i);
    Deliver(*listener_, kDialer, *dialer_, 100 + i);
  }
  EXPECT_EQ(dialer_->counters().bytes_shared, 4 * kSection);
  EXPECT_EQ(listener_->counters().bytes_shared, 4 * kSection);
  EXPECT_EQ(dialer_->counters().frames_sent, there + 3);
  EXPECT_EQ(dialer_->counters().frames_received, back + 3);
  EXPECT_EQ(dialer_->counters().bytes_sent, listener_->counters().bytes_received);
}

TEST_F(SharedTransportTest, FramesSharedAndNotStayInOrder) {
  Open(size_t{2} << 20);
  std::deque<Frame> held;
  uint64_t sent = 0, received = 0;
  while (received < 400) {
    for (int i = 0; i < 20; ++i, ++sent) {
      dialer_->Send(kListener, FrameOf(sent, sent % 3 == 0 ? 800 : kSection));
    }
    for (int i = 0; i < 20; ++i, ++received) {
      PeerId from;
      Frame frame;
      ASSERT_TRUE(Await(*listener_, &from, &frame));
      ExpectFrame(frame, received);
      held.push_back(std::move(frame));
      if (held.size() > 7) held.erase(held.begin() + 3);
    }
    PeerId from;
    Frame none;
    EXPECT_FALSE(dialer_->Receive(0, &from, &none));
  }
  const uint64_t shared = dialer_->counters().bytes_shared;
  EXPECT_GT(shared, 10 * kSection);
  EXPECT_LT(shared, dialer_->counters().bytes_sent) << "some found no room";
}

TEST_F(SharedTransportTest, WhatPathsSayToEachOtherEndsNoWait) {
  Open(size_t{8} << 20);
  dialer_->Send(kListener, FrameOf(1));
  PeerId from;
  Frame frame;
  ASSERT_TRUE(Await(*listener_, &from, &frame));
  // The answer to the offer comes before this frame.
  listener_->Send(kDialer, FrameOf(2, 800));
  ASSERT_TRUE(dialer_->Receive(20000, &from, &frame));
  ExpectFrame(frame, 2);
}

TEST_F(SharedTransportTest, AFullArenaStopsNothingAndEmptiesAgain) {
  Open(size_t{1} << 20);
  DeliverUntilShared(*dialer_, kListener, *listener_);
  const uint64_t before = dialer_->counters().bytes_shared;
  std::vector<Frame> held;
  for (uint64_t i = 1; i <= 30; ++i) {
    dialer_->Send(kListener, FrameOf(i));
    PeerId from;
    ASSERT_TRUE(Await(*listener_, &from, &held.emplace_back()));
    ExpectFrame(held.back(), i);
  }
  const uint64_t while_full = dialer_->counters().bytes_shared;
  EXPECT_GE(while_full - before, kSection);
  EXPECT_LE(while_full - before, size_t{1} << 20);
  for (uint64_t i = 1; i <= 30; ++i) ExpectFrame(held[i - 1], i);  // None was overwritten.
  held.clear();
  Deliver(*dialer_, kListener, *listener_, 31);
  EXPECT_EQ(dialer_->counters().bytes_shared, while_full + kSection);
}

TEST_F(SharedTransportTest, ASectionMadeForThePeerIsNotCopiedAndMayBeSentAgain) {
  Open(size_t{8} << 20);
  std::span<std::byte> bytes;
  const Buffer early = dialer_->sections()->Make(kListener, kSection, &bytes);
  EXPECT_EQ(early.size(), kSection) << "nothing is shared yet: it is made elsewhere";
  DeliverUntilShared(*dialer_, kListener, *listener_);
  Buffer made = dialer_->sections()->Make(kListener, kSection, &bytes);
  std::fill(bytes.begin(), bytes.end(), std::byte{5});
  const uint64_t before = dialer_->counters().bytes_shared;
  std::vector<Frame> got;
  for (int i = 0; i < 3; ++i) {  // A repeat arrives while the first is held.
    Frame frame;
    frame.sections = {made};
    dialer_->Send(kListener, std::move(frame));
    PeerId from;
    ASSERT_TRUE(Await(*listener_, &from, &got.emplace_back()));
  }
  EXPECT_EQ(dialer_->counters().bytes_shared, before + 3 * kSection);
  // The first is mapped: a write to it, against all rules, shows.
  bytes[7] = std::byte{9};
  EXPECT_EQ(got[0].sections[0].data()[7], std::byte{9});
  EXPECT_EQ(got[1].sections[0].data()[7], std::byte{5});
  EXPECT_EQ(got[2].sections[0].data()[7], std::byte{5});
  // Its memory is not reused while the receiver holds it.
  made = Buffer();
  const Buffer next = dialer_->sections()->Make(kListener, kSection, &bytes);
  std::fill(bytes.begin(), bytes.end(), std::byte{6});
  EXPECT_EQ(got[0].sections[0].data()[8], std::byte{5});
}

TEST_F(SharedTransportTest, WhatIsHeldOutlivesItsSender) {
  Open(size_t{8} << 20);
  DeliverUntilShared(*dialer_, kListener, *listener_);
  const uint64_t before = dialer_->counters().bytes_shared;
  dialer_->Send(kListener, FrameOf(1));
  PeerId from;
  Frame frame;
  ASSERT_TRUE(Await(*listener_, &from, &frame));
  EXPECT_EQ(dialer_->counters().bytes_shared, before + kSection);
  dialer_.reset();
  listener_.reset();
  ExpectFrame(frame, 1);
}

TEST_F(SharedTransportTest, APeerThatSharesNothingIsServedAllTheSame) {
  Open(size_t{8} << 20, 0);
  for (uint64_t i = 0; i < 4; ++i) {
    Deliver(*dialer_, kListener, *listener_, i);
    Deliver(*listener_, kDialer, *dialer_, i);
  }
  EXPECT_EQ(dialer_->counters().bytes_shared, 0u);
  EXPECT_EQ(dialer_->counters().frames_dropped, 0u);
}

// A peer that takes the address of a dead one does not know its memory.
TEST_F(SharedTransportTest, ASuccessorOfTheSameNameIsOfferedAnew) {
  Open(size_t{8} << 20);
  DeliverUntilShared(*dialer_, kListener, *listener_);
  listener_.reset();
  listener_ = NewZmqTransport(OptionsFor(kListener, size_t{8} << 20));
  ASSERT_TRUE(listener_->Listen(address_).ok());
  PeerId from;
  Frame frame;
  bool came = false;
  for (uint64_t number = 0; number < 100 && !came; ++number) {
    dialer_->Send(kListener, FrameOf(number));
    came = listener_->Receive(100, &from, &frame);
    EXPECT_FALSE(dialer_->Receive(0, &from, &frame) && !came);
  }
  ASSERT_TRUE(came) << "retries go through";
  while (listener_->Receive(50, &from, &frame)) {
  }
  while (dialer_->Receive(50, &from, &frame)) {
  }
  DeliverUntilShared(*dialer_, kListener, *listener_);  // Frames are shared again.
}

// ---- Another process.

TEST_F(SharedTransportTest, AProcessThatDiesLeavesNothingBehind) {
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {  // The listener, which keeps all frames and is killed.
    auto listener = NewZmqTransport(OptionsFor(kListener, size_t{8} << 20));
    const Result<std::string> address = listener->Listen("tcp://127.0.0.1:0");
    if (!address.ok()) _exit(1);
    const std::string text = *address + "\n";
    if (write(told[1], text.data(), text.size()) < 0) _exit(1);
    std::deque<Frame> held;
    PeerId from;
    while (true) {
      Frame frame;
      if (!listener->Receive(1000, &from, &frame)) continue;
      held.push_back(frame);
      listener->Send(from, std::move(frame));
    }
  }
  ASSERT_GT(child, 0);
  char text[128] = {};
  ASSERT_GT(read(told[0], text, sizeof(text) - 1), 0);
  const std::string address(text, std::strlen(text) - 1);

  dialer_ = NewZmqTransport(OptionsFor(kDialer, size_t{8} << 20));
  ASSERT_TRUE(dialer_->Connect(kListener, address).ok());
  PeerId from;
  Frame kept;
  for (uint64_t i = 0; i < 6; ++i) {
    dialer_->Send(kListener, FrameOf(i));
    ASSERT_TRUE(Await(*dialer_, &from, &kept));
    ExpectFrame(kept, i);
  }
  EXPECT_GT(dialer_->counters().bytes_shared, 0u);
  const auto open_arenas = [] {
    int count = 0;
    for (int fd = 0; fd < 256; ++fd) {
      char link[64] = {};
      const std::string path = "/proc/self/fd/" + std::to_string(fd);
      if (readlink(path.c_str(), link, sizeof(link) - 1) > 0) {
        count += std::string(link).starts_with("/memfd:hdps_arena") ? 1 : 0;
      }
    }
    return count;
  };
  EXPECT_EQ(open_arenas(), 1);
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  Frame none;
  for (int i = 0; i < 200 && open_arenas() > 0; ++i) dialer_->Receive(100, &from, &none);
  EXPECT_EQ(open_arenas(), 0) << "what was lent to it is free again";
  ExpectFrame(kept, 5);  // What it lent can still be read.
  // A peer that does not know of its death sends once more, and then learns of it.
  dialer_->Send(kListener, FrameOf(6));
  EXPECT_EQ(open_arenas(), 1);
  dialer_->HangUp(kListener);
  EXPECT_EQ(open_arenas(), 0);
  close(told[0]);
  close(told[1]);
}

// ---- Lies.

// Fixture that sends malicious control frames and descriptors in the right format.
class SharedDoor : public testing::Test {
 protected:
  void SetUp() override {
    const Result<std::string> address = listener_->Listen("tcp://127.0.0.1:0");
    ASSERT_TRUE(address.ok()) << address.status().message();
    address_ = *address;
  }
  static Frame Control(uint16_t kind, const std::vector<uint64_t>& words) {
    Frame frame;
    frame.header.kind = kind;
    frame.header.sender = kDialer.value;
    frame.envelope = Buffer::CopyOf<uint64_t>(words);
    ChecksumFrame(frame);
    return frame;
  }
  // Returns a frame that claims that its one section is shared.
  static Frame Descriptor(const std::vector<uint64_t>& words) {
    Frame frame = EncodeMessage(AdvanceRequest{1});
    frame.header.sender = kDialer.value;
    frame.header.shared_sections = 1;
    frame.sections = {Buffer::CopyOf<uint64_t>(words)};
    ChecksumFrame(frame);
    return frame;
  }

  std::unique_ptr<Transport> listener_ = NewZmqTransport(OptionsFor(kListener, size_t{8} << 20));
  std::string address_;
};

TEST_F(SharedDoor, ForgedOffersAndDescriptorsAreRefused) {
  const uint64_t machine = HashString(MachineIdentity());
  const auto pid = static_cast<uint64_t>(getpid());
  auto arena = SharedArena::Create({kDialer.value, kListener.value, 7}, size_t{1} << 20);
  ASSERT_TRUE(arena.ok());
  const SharedPlace place = (*arena)->place();
  RawPeer peer(address_);
  peer.Greet(RoutingIdFor(kDialer));
  peer.AwaitGreeting();
  uint64_t refused = 0;
  const auto descriptor = [&](const std::vector<uint64_t>& words) {
    peer.SendFrame(Descriptor(words));
    ++refused;
  };
  descriptor({7, 0, 8, 1});  // An arena that was never offered.
  descriptor({7, 0});
  for (const uint64_t kind : {0xff01, 0xff02, 0xff03}) {
    peer.SendFrame(Control(static_cast<uint16_t>(kind), {}));
    peer.SendFrame(Control(static_cast<uint16_t>(kind), {1, 2}));
    peer.SendFrame(Control(static_cast<uint16_t>(kind), {7, 1, pid}));
  }
  const auto offer = [&](uint64_t on, const SharedPlace& at, uint64_t owner, uint64_t secret) {
    peer.SendFrame(Control(0xff01, {on, at.pid, at.fd, at.bytes, owner, kListener.value, secret}));
  };
  offer(machine + 1, place, kDialer.value, 7);  // An arena of another machine.
  offer(machine, place, 9, 7);                  // The arena of another peer.
  offer(machine, place, kDialer.value, 8);      // Another secret than the file has.
  offer(machine, {pid, 0, place.bytes}, kDialer.value, 7);
  offer(machine, {pid, place.fd, ~uint64_t{0}}, kDialer.value, 7);
  offer(machine, {~uint64_t{0}, ~uint64_t{0}, place.bytes}, kDialer.value, 7);
  descriptor({7, 0, 8, 1});
  offer(machine, place, kDialer.value, 7);  // A true offer, and false claims about its content.
  descriptor({7, size_t{1} << 20, 8, 2});
  descriptor({7, 0, ~uint64_t{0}, 3});
  descriptor({7, 8, 8, 4});
  descriptor({8, 0, 8, 5});
  peer.SendFrame(Control(0xff03, {7, 100}));
  descriptor({7, 0, 8, 99});
  PeerId from;
  Frame frame;
  for (int i = 0; i < 200 && listener_->counters().frames_refused < refused; ++i) {
    EXPECT_FALSE(listener_->Receive(100, &from, &frame));
  }
  EXPECT_EQ(listener_->counters().frames_refused, refused);
  // A valid descriptor: the header promises 32 bytes, which the block has.
  peer.SendFrame(Descriptor({7, 0, 32, 101}));
  bool came = false;
  for (int i = 0; i < 200 && !came; ++i) came = listener_->Receive(100, &from, &frame);
  ASSERT_TRUE(came);
  EXPECT_EQ(from, kDialer);
  EXPECT_EQ(frame.sections[0].size(), 32u);
}

}  // namespace
}  // namespace hdps
