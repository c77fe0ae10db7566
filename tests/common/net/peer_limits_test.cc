// Tests strangers at the limits of a listener, over sockets of many addresses, and members beside
// them.
#include "common/net/peer_limits.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/net/transport.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "tests/common/net/keys_for_tests.h"
#include "tests/common/net/zmq_peer.h"

namespace hdps {
namespace {

const PeerId kListener{100}, kHonest = NamedPeer(200), kStranger = NamedPeer(300);
constexpr uint64_t kMiB = 1 << 20;

Frame FrameOf(PeerId sender) {
  Frame frame = EncodeMessage(AdvanceRequest{1});
  frame.header.sender = sender.value;
  ChecksumFrame(frame);
  return frame;
}

uint64_t ResidentMiB() {
  std::ifstream statm("/proc/self/statm");
  uint64_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * 4096 / kMiB;
}

// Relays the bytes at its own address, a limited number per turn.
class SlowRelay {
 public:
  explicit SlowRelay(const std::string& to)
      : listener_fd_(socket(AF_INET, SOCK_STREAM, 0)), to_(to) {
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(name);
    EXPECT_EQ(bind(listener_fd_, reinterpret_cast<sockaddr*>(&name), size), 0);
    EXPECT_EQ(listen(listener_fd_, 1), 0);
    EXPECT_EQ(getsockname(listener_fd_, reinterpret_cast<sockaddr*>(&name), &size), 0);
    address_ = "tcp://127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  }
  ~SlowRelay() {
    if (near_ >= 0) close(near_);
    close(listener_fd_);
  }
  const std::string& address() const { return address_; }
  void Pass(size_t bytes) {
    pollfd waiting = {listener_fd_, POLLIN, 0};
    if (near_ < 0 && poll(&waiting, 1, 0) == 1) {
      near_ = accept(listener_fd_, nullptr, nullptr);
      far_ = std::make_unique<RawPeer>(to_, "127.0.0.9");
    }
    if (near_ < 0) return;
    Move(near_, far_->socket(), bytes);
    Move(far_->socket(), near_, bytes);
  }
  uint64_t passed() const { return passed_; }

 private:
  void Move(int from, int to, size_t bytes) {
    std::string buffer(bytes, '\0');
    const ssize_t got = recv(from, buffer.data(), bytes, MSG_DONTWAIT);
    if (got <= 0) return;
    passed_ += static_cast<uint64_t>(got);
    EXPECT_EQ(send(to, buffer.data(), static_cast<size_t>(got), MSG_NOSIGNAL), got);
  }

  int listener_fd_, near_ = -1;
  const std::string to_;
  std::string address_;
  std::unique_ptr<RawPeer> far_;
  uint64_t passed_ = 0;
};

// Fixture with a listener whose limits a test lowers, and a member that dials it.
class AtTheLimit : public testing::Test {
 protected:
  void Listen(bool keys = false) {
    if (keys) keys_ = FolderOfKeys();
    TransportOptions options = OptionsFor(kListener, keys_, KeyRole::kServer);
    options.limits = limits_;
    listener_ = NewZmqTransport(options);
    const Result<std::string> address = listener_->Listen("tcp://127.0.0.1:0");
    ASSERT_TRUE(address.ok()) << address.status().message();
    address_ = *address;
    honest_ = NewZmqTransport(OptionsFor(kHonest, keys_, KeyRole::kWorker));
  }
  RawPeer Greeted(PeerId name, const char* from) {
    RawPeer peer(address_, from);
    peer.Greet(RoutingIdFor(name));
    peer.AwaitGreeting();
    return peer;
  }
  // Returns a peer once the listener has received its frame.
  RawPeer Heard(PeerId name, const char* from) {
    RawPeer peer = Greeted(name, from);
    peer.SendFrame(FrameOf(name));
    return peer;
  }
  void TurnUntil(const std::function<bool()>& done) {
    for (int turn = 0; turn < 1000 && !done(); ++turn) {
      PeerId from;
      Frame frame;
      listener_->Receive(10, &from, &frame);
    }
    EXPECT_TRUE(done());
  }
  void HonestIsServed() {
    ASSERT_TRUE(honest_->Connect(kListener, address_).ok());
    honest_->Send(kListener, EncodeMessage(AdvanceRequest{7}));
    PeerId from;
    Frame frame;
    for (int turn = 0; turn < 1000 && from != kHonest; ++turn) {
      listener_->Receive(10, &from, &frame);
    }
    ASSERT_EQ(from, kHonest);
    listener_->Send(kHonest, EncodeMessage(AdvanceRequest{8}));
    from = {};
    for (int turn = 0; turn < 1000 && from != kListener; ++turn)
      honest_->Receive(10, &from, &frame);
    EXPECT_EQ(from, kListener);
  }
  uint64_t Ended(PeerLimit why) const { return listener_->counters().ended[why]; }
  uint64_t EndedInAll() const {
    uint64_t all = 0;
    for (const uint64_t count : listener_->counters().ended.by_limit) all += count;
    return all;
  }

  PeerLimits limits_;
  std::shared_ptr<FileSystem> keys_;
  std::unique_ptr<Transport> listener_, honest_;
  std::string address_;
};

TEST_F(AtTheLimit, ConnectionsInAll) {
  limits_.connections_max = 9;
  Listen();
  HonestIsServed();
  std::vector<RawPeer> many;
  for (uint64_t i = 0; i < 12; ++i) {
    many.push_back(Heard(NamedPeer(1000 + i), ("127.0.1." + std::to_string(i + 1)).c_str()));
    TurnUntil([&] { return listener_->counters().frames_received >= i + 2 || i >= 8; });
  }
  TurnUntil([&] { return Ended(PeerLimit::kConnections) == 4; });
  for (size_t i = 8; i < 12; ++i) TurnUntil([&] { return many[i].Ended(); });
  HonestIsServed();
  EXPECT_FALSE(many[0].Ended());
}

TEST_F(AtTheLimit, ManySilentOnesStarveNobody) {
  limits_.connections_max = 21;
  Listen();
  HonestIsServed();
  testing::internal::CaptureStderr();
  std::vector<RawPeer> silent;
  for (int i = 0; i < 100; ++i) silent.emplace_back(address_, "127.0.0.2");
  TurnUntil([&] { return Ended(PeerLimit::kConnections) == 80; });
  for (size_t i = 0; i < 80; ++i) TurnUntil([&] { return silent[i].Ended(); });
  for (size_t i = 80; i < 100; ++i) EXPECT_FALSE(silent[i].Ended()) << i;
  HonestIsServed();
  EXPECT_EQ(listener_->counters().frames_refused, 0u);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, testing::HasSubstr("from 127.0.0.2: the limit on connections"));
  EXPECT_EQ(log.find("ended a connection"), log.rfind("ended a connection")) << "told once";
}

// The stranger announces 4 GiB of a handshake, of which libzmq would take as much as arrives.
TEST_F(AtTheLimit, WithKeysNobodySendsMuchBeforeHisKey) {
  Listen(true);
  HonestIsServed();
  const uint64_t before = ResidentMiB();
  RawPeer stranger(address_, "127.0.0.2");
  std::string greeting("\xff\0\0\0\0\0\0\0\x01\x7f\x03\0CURVE", 17);
  greeting.resize(64, '\0');
  stranger.Write(greeting);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  stranger.Announce(64 * kMiB, false, true);  // It records each byte.
#else
  stranger.Announce(kFrameBytesMax, false, true);
#endif
  stranger.Write(std::string(kMiB, 'x'));
  TurnUntil([&] { return stranger.Ended() && Ended(PeerLimit::kParts) == 1; });
  const uint64_t after = ResidentMiB();
  std::printf("[ measured ] 4 GiB of a handshake announced: %d MiB -> %d MiB\n",
              static_cast<int>(before), static_cast<int>(after));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(after, before + 16);
#endif
  HonestIsServed();
  EXPECT_EQ(EndedInAll(), 1u);
  EXPECT_EQ(listener_->counters().connections_admitted, 1u);
}

TEST_F(AtTheLimit, AMembersLongFirstFrameTakesItsTime) {
  Listen(true);
  SlowRelay relay(address_);
  ASSERT_TRUE(honest_->Connect(kListener, relay.address()).ok());
  Frame frame = EncodeMessage(AdvanceRequest{1});
  frame.sections.push_back(Buffer::CopyOf(std::vector<std::byte>(8 * kMiB)));
  honest_->Send(kListener, frame);
  PeerId from;
  for (int turn = 0; turn < 1000 && from != kHonest; ++turn) {
    relay.Pass(128 << 10);
    listener_->Receive(10, &from, &frame);
    Frame answer;
    PeerId at;
    honest_->Receive(0, &at, &answer);
  }
  EXPECT_EQ(from, kHonest);
  EXPECT_GT(relay.passed(), 8 * kMiB);
  EXPECT_EQ(EndedInAll(), 0u);
  EXPECT_EQ(listener_->counters().connections_admitted, 1u) << "it never had to come again";
}

TEST_F(AtTheLimit, WithoutKeysAnEndlessPartEndsAtWhatIsHeld) {
  limits_.held_bytes_max = 4 * kMiB;
  Listen();
  RawPeer stranger = Greeted(kStranger, "127.0.0.2");
  stranger.Announce(kFrameBytesMax / 8, false);
  uint64_t sent = 0;
  while (!stranger.Ended() && sent < 256 * kMiB) {
    stranger.Write(std::string(64 << 10, 'x'));
    sent += 64 << 10;
    PeerId from;
    Frame frame;
    listener_->Receive(1, &from, &frame);
  }
  EXPECT_TRUE(stranger.Ended());
  EXPECT_EQ(Ended(PeerLimit::kHeldBytes), 1u);
  std::printf("[ measured ] an endless part, 4 MiB held at most: ended after %d MiB\n",
              static_cast<int>(sent / kMiB));
  HonestIsServed();
}

TEST_F(AtTheLimit, TogetherTheLargestEnds) {
  limits_.held_bytes_max = 64 * kMiB;
  limits_.all_held_bytes_max = 5 * kMiB;
  Listen();
  std::vector<RawPeer> strangers;
  for (const uint64_t mib : {1, 3, 2}) {
    const std::string from = "127.0.0.1" + std::to_string(mib);
    strangers.push_back(Greeted(NamedPeer(1000 + mib), from.c_str()));
    strangers.back().Announce(512 * kMiB, false);
    strangers.back().Write(std::string(mib * kMiB, 'x'));
  }
  TurnUntil([&] { return Ended(PeerLimit::kAllHeldBytes) == 1; });
  TurnUntil([&] { return strangers[1].Ended(); });
  HonestIsServed();
  EXPECT_FALSE(strangers[0].Ended() || strangers[2].Ended());
  EXPECT_EQ(EndedInAll(), 1u);
}

TEST_F(AtTheLimit, AFloodOfWhatIsRefusedEnds) {
  limits_.refused_max = 20;
  Listen();
  HonestIsServed();
  RawPeer stranger = Greeted(kStranger, "127.0.0.2");
  for (int i = 0; i < 200; ++i) stranger.SendPart("x", 1, false);
  TurnUntil([&] { return stranger.Ended(); });
  EXPECT_EQ(Ended(PeerLimit::kRefused), 1u);
  HonestIsServed();
  EXPECT_EQ(EndedInAll(), 1u);
}

// libzmq takes 64 bytes for each part, and as much for a command, which it queues like parts.
TEST_F(AtTheLimit, AMessageOfEndlessPartsEndsWhileItArrives) {
  Listen();
  HonestIsServed();
  const std::string part("\x01\x01x", 3), command("\x05\x0a\x09SUBSCRIBE", 12);
  for (const std::string& one : {part, command}) {
    std::string many;
    while (many.size() < kMiB) many += one;
    const uint64_t before = ResidentMiB(), ended = Ended(PeerLimit::kParts);
    RawPeer stranger = Greeted(kStranger, "127.0.0.2");
    uint64_t sent = 0;
    for (; sent < 150 * kMiB && !stranger.Ended(); sent += many.size()) {
      stranger.Write(many);
      PeerId from;
      Frame frame;
      listener_->Receive(1, &from, &frame);
    }
    TurnUntil([&] { return Ended(PeerLimit::kParts) == ended + 1 && stranger.Ended(); });
    const uint64_t after = ResidentMiB();
    std::printf("[ measured ] endless parts of %d bytes: ended after %d MiB; %d MiB -> %d MiB\n",
                static_cast<int>(one.size()), static_cast<int>(sent / kMiB),
                static_cast<int>(before), static_cast<int>(after));
    EXPECT_LT(after, before + 16);
    HonestIsServed();
  }
  EXPECT_EQ(EndedInAll(), 2u);
}

// A message with a few parts too many is refused by name as before, and its connection stays.
TEST_F(AtTheLimit, AMessageOfAFewPartsTooMany) {
  Listen();
  RawPeer stranger = Greeted(kStranger, "127.0.0.2");
  for (int message = 0; message < 3; ++message) {
    for (int i = 0; i < 12; ++i) stranger.SendPart("x", 1, i < 11);
  }
  TurnUntil([&] { return listener_->counters().frames_refused == 3; });
  stranger.SendFrame(FrameOf(kStranger));
  TurnUntil([&] { return listener_->counters().frames_received == 1; });
  EXPECT_EQ(EndedInAll(), 0u);
}

}  // namespace
}  // namespace hdps
