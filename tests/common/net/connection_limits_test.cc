// The limits on whoever connects, over connections that the test makes up.
#include "common/net/zmq/connection_limits.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace hdps {
namespace {

constexpr char kAt[] = "tcp://127.0.0.1:5";
constexpr uint64_t kLetIn = 301;  // Acknowledged, of what a listener with keys says by then.

// Connections by their descriptors, as the test has set them.
class FakeConnections : public OpenConnections {
 public:
  struct Fake {
    Identity identity;
    Bytes bytes;
  };
  std::optional<Identity> Identify(int fd, const std::string&) override {
    const auto found = open.find(fd);
    return found == open.end() ? std::nullopt : std::optional(found->second.identity);
  }
  std::optional<Bytes> BytesOf(int fd, uint64_t cookie) override {
    const auto found = open.find(fd);
    if (found == open.end() || found->second.identity.cookie != cookie) return std::nullopt;
    return found->second.bytes;
  }
  void End(int fd, uint64_t cookie) override {
    const auto found = open.find(fd);
    ASSERT_NE(found, open.end()) << "nobody is there any more";
    ASSERT_EQ(found->second.identity.cookie, cookie) << "that is another by now";
    open.erase(found);
    ended.insert(fd);
  }
  std::map<int, Fake> open;
  std::set<int> ended;
};

// Small limits, and each test raises or reaches one of them.
class Limits : public testing::Test {
 protected:
  Limits() {
    limits_.connections_max = 20;
    limits_.connections_per_address_max = 10;
    limits_.opened_per_second_max = 1000;
    limits_.unheard_max = 8;
    limits_.unheard_bytes_max = 1000;
    limits_.held_bytes_max = 10'000;
    limits_.all_held_bytes_max = 25'000;
    limits_.frames_per_second_max = 100;
    limits_.refused_per_second_max = 10;
  }
  ConnectionLimits& tested() {
    if (!made_) made_.emplace(limits_, open_);
    return *made_;
  }
  // By a new connection, as libzmq tells it.
  void Open(int fd, const std::string& address, bool keys = false) {
    open_.open[fd] = {{++last_cookie_, address}, {}};
    tested().OnEvent({true, fd, kAt}, 1, keys, now_ms_);
  }
  void Close(int fd) {
    open_.open.erase(fd);
    tested().OnEvent({false, fd, kAt}, 1, false, now_ms_);
  }
  void Frame(int fd, uint64_t bytes = 10, bool refused = false) {
    const auto found = open_.open.find(fd);
    if (found == open_.open.end()) return;
    found->second.bytes.received += bytes;
    tested().OnMessage({false, fd, found->second.identity.address, bytes}, refused, now_ms_);
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

TEST_F(Limits, ConnectionsOfAnAddress) {
  for (int fd = 0; fd < 10; ++fd) {
    Open(fd, "greedy");
    Frame(fd);
  }
  Open(10, "greedy");
  Open(11, "honest");
  EXPECT_EQ(open_.ended, std::set<int>{10});
  EXPECT_EQ(Ended(PeerLimit::kConnectionsOfAddress), 1u);
}

TEST_F(Limits, OfUnheardOnesTheOldestMakesRoom) {
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
  EXPECT_EQ(tested().size(), 10u);
  EXPECT_EQ(Ended(PeerLimit::kUnheard), 98u - 8u);
}

TEST_F(Limits, FramesThatAreRefusedMakeNobodyHeard) {
  for (int fd = 0; fd < 8; ++fd) {
    Open(fd, "strange");
    Frame(fd, 10, true);
  }
  Open(8, "honest");
  EXPECT_EQ(open_.ended, std::set<int>{0});
}

TEST_F(Limits, WhoIsLetInByKeyIsHeard) {
  for (int fd = 0; fd < 8; ++fd) Open(fd, "member", true);
  for (int fd = 0; fd < 4; ++fd) open_.open[fd].bytes.acknowledged = kLetIn;
  Open(8, "new", true);
  EXPECT_EQ(open_.ended, std::set<int>{4})
      << "nobody has looked since, and it is seen all the same";
}

TEST_F(Limits, ALongFirstFrameIsOnItsWay) {
  for (int fd = 0; fd < 8; ++fd) Open(fd, "member");
  open_.open[0].bytes.received = 5000;
  Open(8, "new");
  EXPECT_EQ(open_.ended, std::set<int>{1});
}

TEST_F(Limits, NewConnectionsASecond) {
  limits_.opened_per_second_max = 3;
  Open(0, "hasty");
  Frame(0);
  for (int fd = 1; fd < 6; ++fd) Open(fd, "hasty");
  EXPECT_EQ(EndedInAll(), 0u) << "twice as many at once";
  Open(6, "hasty");
  EXPECT_EQ(open_.ended, std::set<int>{1}) << "the oldest that is unheard";
  Open(7, "honest");
  EXPECT_EQ(Ended(PeerLimit::kOpenedPerSecond), 1u);
  now_ms_ += 1000;
  for (int fd = 8; fd < 11; ++fd) Open(fd, "hasty");
  EXPECT_EQ(Ended(PeerLimit::kOpenedPerSecond), 1u);
}

TEST_F(Limits, BytesWithoutAKey) {
  for (int fd = 0; fd < 3; ++fd) Open(fd, "member", true);
  open_.open[0].bytes = {1001, 234};       // Neither let in nor refused.
  open_.open[1].bytes = {1001, 234 + 12};  // Its key was refused.
  open_.open[2].bytes = {9000, kLetIn};    // Its first frame is long.
  Look();
  EXPECT_EQ(open_.ended, (std::set<int>{0, 1}));
  EXPECT_EQ(Ended(PeerLimit::kUnheardBytes), 2u);
}

TEST_F(Limits, BytesHeldOfOne) {
  Open(0, "member");
  Open(1, "stranger");
  for (int i = 0; i < 100; ++i) Frame(0, 5000);
  open_.open[1].bytes.received = 10'000;
  Look();
  EXPECT_EQ(EndedInAll(), 0u);
  EXPECT_EQ(tested().held_bytes(), 10'000u);
  open_.open[1].bytes.received = 10'001;
  Look();
  EXPECT_EQ(open_.ended, std::set<int>{1});
  EXPECT_EQ(Ended(PeerLimit::kHeldBytes), 1u);
}

TEST_F(Limits, BytesHeldOfAllEndTheLargest) {
  for (int fd = 0; fd < 4; ++fd) Open(fd, "member");
  const uint64_t held[] = {6000, 9000, 7000, 4000};
  for (int fd = 0; fd < 4; ++fd) open_.open[fd].bytes.received = held[fd];
  Look();
  EXPECT_EQ(open_.ended, std::set<int>{1});
  EXPECT_EQ(Ended(PeerLimit::kAllHeldBytes), 1u);
  EXPECT_EQ(tested().held_bytes(), 17'000u);
}

TEST_F(Limits, FramesASecond) {
  limits_.held_bytes_max = 1 << 20;
  Open(0, "member");
  Open(1, "flood");
  for (int second = 0; second < 5; ++second) {
    for (int i = 0; i < 100; ++i) Frame(0);
    now_ms_ += 1000;
  }
  for (int i = 0; i < 200; ++i) Frame(1);
  EXPECT_EQ(EndedInAll(), 0u);
  Frame(1);
  EXPECT_EQ(open_.ended, std::set<int>{1});
  EXPECT_EQ(Ended(PeerLimit::kFramesPerSecond), 1u);
}

TEST_F(Limits, RefusedFramesASecond) {
  Open(0, "member");
  Open(1, "flood");
  for (int i = 0; i < 21; ++i) Frame(0);
  for (int i = 0; i < 21; ++i) Frame(1, 10, true);
  EXPECT_EQ(open_.ended, std::set<int>{1});
  EXPECT_EQ(Ended(PeerLimit::kRefusedPerSecond), 1u);
}

// Descriptors come again, and what we hear of them is late.
TEST_F(Limits, ADescriptorThatIsAnothersByNowHurtsNobody) {
  Open(0, "stranger");
  open_.open[0] = {{++last_cookie_, "member"}, {50'000, 0}};  // Nobody has told us yet.
  Look();
  EXPECT_TRUE(open_.open.contains(0));
  EXPECT_EQ(tested().size(), 0u);
  open_.open[0].bytes = {};
  tested().OnEvent({true, 0, kAt}, 2, false, now_ms_);
  tested().OnEvent({false, 0, kAt}, 1, false, now_ms_);  // The stranger's end, at another listener.
  EXPECT_TRUE(tested().Knows(0));
  for (int i = 0; i < 50; ++i) {
    tested().OnMessage({false, 0, "stranger", 100'000}, true,
                       now_ms_);  // What he has left in the queue.
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
  tested().OnMessage({false, 0, "a", 50'000}, false, now_ms_);
  Look();
  open_.open[0].bytes.received = 10'001;
  Look();
  EXPECT_EQ(Ended(PeerLimit::kHeldBytes), 1u);
}

}  // namespace
}  // namespace hdps
