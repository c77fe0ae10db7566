// Tests the limits on connections, on connections that the test makes up.
#include "common/net/zmq/connection_limits.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace hdps {
namespace {

constexpr char kAt[] = "tcp://127.0.0.1:5";

// Connections by descriptor, as the test has set them.
class FakeConnections : public OpenConnections {
 public:
  struct Fake {
    Identity identity;
    uint64_t received = 0;
  };
  std::optional<Identity> Identify(int fd, const std::string&) override {
    const auto found = open.find(fd);
    return found == open.end() ? std::nullopt : std::optional(found->second.identity);
  }
  std::optional<uint64_t> ReceivedBy(int fd, uint64_t cookie) override {
    const auto found = open.find(fd);
    if (found == open.end() || found->second.identity.cookie != cookie) return std::nullopt;
    return found->second.received;
  }
  bool TakeEndedByParts(uint64_t cookie) override { return ended_by_parts.erase(cookie) > 0; }
  void End(int fd, uint64_t cookie) override {
    const auto found = open.find(fd);
    ASSERT_NE(found, open.end()) << "nobody is there any more";
    ASSERT_EQ(found->second.identity.cookie, cookie) << "that is another by now";
    open.erase(found);
    ended.insert(fd);
  }
  std::map<int, Fake> open;
  std::set<int> ended;
  std::set<uint64_t> ended_by_parts;
};

// Fixture with small limits, of which each test raises or reaches one.
class Limits : public testing::Test {
 protected:
  Limits() {
    limits_.connections_max = 20;
    limits_.held_bytes_max = 10'000;
    limits_.all_held_bytes_max = 25'000;
    limits_.refused_max = 20;
  }
  ConnectionLimits& tested() {
    if (!made_) made_.emplace(limits_, open_);
    return *made_;
  }
  // Reports a new connection like libzmq.
  void Open(int fd, const std::string& address) {
    open_.open[fd] = {{++last_cookie_, address}, 0};
    tested().OnEvent({true, fd, kAt}, 1);
  }
  void Close(int fd) {
    open_.open.erase(fd);
    tested().OnEvent({false, fd, kAt}, 1);
  }
  void Frame(int fd, uint64_t bytes = 10, bool refused = false) {
    const auto found = open_.open.find(fd);
    if (found == open_.open.end()) return;
    found->second.received += bytes;
    tested().OnMessage({false, fd, found->second.identity.address, bytes}, refused);
  }
  void Look() {
    now_ms_ += ConnectionLimits::kLookEveryMs;
    tested().Look(now_ms_);
  }
  uint64_t Ended(PeerLimit why) { return tested().ended()[why]; }
  uint64_t EndedInAll() {
    uint64_t all = 0;
    for (const uint64_t count : tested().ended().by_limit) all += count;
    return all;
  }

  PeerLimits limits_;
  FakeConnections open_;
  std::optional<ConnectionLimits> made_;
  uint64_t last_cookie_ = 0;
  int64_t now_ms_ = 1000;
};

TEST_F(Limits, WhoStaysBelowThemIsLeftAlone) {
  for (int fd = 0; fd < 20; ++fd) {
    Open(fd, fd % 2 == 0 ? "a" : "b");
    Frame(fd);
  }
  Look();
  EXPECT_EQ(tested().size(), 20u);
  EXPECT_EQ(EndedInAll(), 0u);
}

TEST_F(Limits, ConnectionsInAll) {
  for (int fd = 0; fd < 20; ++fd) {
    Open(fd, std::to_string(fd));
    Frame(fd);
  }
  Open(20, "late");
  EXPECT_EQ(open_.ended, std::set<int>{20}) << "all others have been heard";
  EXPECT_EQ(Ended(PeerLimit::kConnections), 1u);
  Close(7);
  Open(21, "later");
  EXPECT_TRUE(open_.open.contains(21)) << "there is room again";
  EXPECT_EQ(EndedInAll(), 1u);
}

TEST_F(Limits, OfUnheardOnesTheOldestMakesRoom) {
  limits_.connections_max = 9;
  Open(0, "member");
  Frame(0);
  for (int fd = 1; fd <= 8; ++fd) Open(fd, "silent");
  Open(9, "honest");
  EXPECT_EQ(open_.ended, std::set<int>{1});
  Open(10, "silent");
  EXPECT_EQ(open_.ended, (std::set<int>{1, 2}));
  Frame(9);
  for (int fd = 11; fd < 100; ++fd) Open(fd, "silent");
  EXPECT_TRUE(open_.open.contains(0) && open_.open.contains(9));
  EXPECT_EQ(tested().size(), 9u);
  EXPECT_EQ(Ended(PeerLimit::kConnections), 100u - 9u);
}

TEST_F(Limits, FramesThatAreRefusedMakeNobodyHeard) {
  for (int fd = 0; fd < 20; ++fd) {
    Open(fd, "strange");
    Frame(fd, 10, true);
  }
  Open(20, "honest");
  EXPECT_EQ(open_.ended, std::set<int>{0});
}

TEST_F(Limits, BytesHeldOfOne) {
  Open(0, "member");
  Open(1, "stranger");
  for (int i = 0; i < 100; ++i) Frame(0, 5000);
  open_.open[1].received = 10'000;
  Look();
  EXPECT_EQ(EndedInAll(), 0u);
  EXPECT_EQ(tested().held_bytes(), 10'000u);
  open_.open[1].received = 10'001;
  Look();
  EXPECT_EQ(open_.ended, std::set<int>{1});
  EXPECT_EQ(Ended(PeerLimit::kHeldBytes), 1u);
}

TEST_F(Limits, BytesHeldOfAllEndTheLargest) {
  for (int fd = 0; fd < 4; ++fd) Open(fd, "member");
  const uint64_t held[] = {6000, 9000, 7000, 4000};
  for (int fd = 0; fd < 4; ++fd) open_.open[fd].received = held[fd];
  Look();
  EXPECT_EQ(open_.ended, std::set<int>{1});
  EXPECT_EQ(Ended(PeerLimit::kAllHeldBytes), 1u);
  EXPECT_EQ(tested().held_bytes(), 17'000u);
}

TEST_F(Limits, RefusedFrames) {
  Open(0, "member");
  Open(1, "flood");
  for (int i = 0; i < 1000; ++i) Frame(0);
  for (int i = 0; i < 20; ++i) Frame(1, 10, true);
  EXPECT_EQ(EndedInAll(), 0u);
  Frame(1, 10, true);
  EXPECT_EQ(open_.ended, std::set<int>{1});
  EXPECT_EQ(Ended(PeerLimit::kRefused), 1u);
}

// Descriptors are reused, and events are late.
TEST_F(Limits, ADescriptorThatIsAnothersByNowHurtsNobody) {
  Open(0, "stranger");
  open_.open[0] = {{++last_cookie_, "member"}, 50'000};  // No event has reported this yet.
  Look();
  EXPECT_TRUE(open_.open.contains(0));
  EXPECT_EQ(tested().size(), 0u);
  open_.open[0].received = 0;
  tested().OnEvent({true, 0, kAt}, 2);
  // The end of the stranger's connection, at another listener.
  tested().OnEvent({false, 0, kAt}, 1);
  EXPECT_TRUE(tested().Knows(0));
  for (int i = 0; i < 50; ++i) {
    // A message that the stranger left in the queue.
    tested().OnMessage({false, 0, "stranger", 100'000}, true);
  }
  EXPECT_EQ(EndedInAll(), 0u);
  tested().ForgetListener(1);
  EXPECT_EQ(tested().size(), 1u);
  tested().ForgetListener(2);
  EXPECT_EQ(tested().size(), 0u);
}

TEST_F(Limits, WhatAPredecessorHasLeftIsNoCreditForLater) {
  Open(0, "a");
  Frame(0, 100);
  Close(0);
  Open(0, "a");
  tested().OnMessage({false, 0, "a", 50'000}, false);
  Look();
  open_.open[0].received = 10'001;
  Look();
  EXPECT_EQ(Ended(PeerLimit::kHeldBytes), 1u);
}

TEST_F(Limits, WhatEndedByItsPartsIsCounted) {
  Open(1, "10.0.0.1");
  Open(2, "10.0.0.1");
  Open(3, "10.0.0.1");
  open_.ended_by_parts = {open_.open[1].identity.cookie, open_.open[2].identity.cookie};
  Close(1);
  Close(3);
  EXPECT_EQ(Ended(PeerLimit::kParts), 1u);
  open_.open.erase(2);  // No event has come for it yet.
  Look();
  EXPECT_EQ(Ended(PeerLimit::kParts), 2u);
  EXPECT_EQ(tested().size(), 0u);
}

}  // namespace
}  // namespace hdps
