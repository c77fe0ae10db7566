// Two transports of one machine that were told a port of the loopback, and the shorter way there.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

#include "common/net/listening.h"
#include "common/net/transport.h"
#include "common/protocol/messages.h"

namespace hdps {
namespace {

constexpr PeerId kListener{100};
constexpr PeerId kDialer{200};
constexpr size_t kShared = size_t{1} << 20;

std::string NearOf(const std::string& address) { return NearAddress(*ParseAddress(address)); }

// How many ends of connections the system lists under the name.
int Connections(const std::string& near_address) {
  std::ifstream list("/proc/net/unix");
  const std::string name = near_address.substr(near_address.find('@'));
  int found = 0;
  for (std::string line; std::getline(list, line);) {
    constexpr char kConnected[] = " 03 ";
    found += line.ends_with(name) && line.find(kConnected) != std::string::npos;
  }
  return found;
}

class NearPathTest : public testing::Test {
 protected:
  void Open(size_t listener_shares, size_t dialer_shares) {
    TransportOptions options = {.self = kListener};
    options.shared_bytes_per_peer = listener_shares;
    listener_ = NewZmqTransport(options);
    const Result<std::string> address = listener_->Listen("tcp://127.0.0.1:0");
    ASSERT_TRUE(address.ok()) << address.status().message();
    address_ = *address;
    options.self = kDialer;
    options.shared_bytes_per_peer = dialer_shares;
    dialer_ = NewZmqTransport(options);
    ASSERT_TRUE(dialer_->Connect(kListener, address_).ok());
  }
  static void Deliver(Transport& from, PeerId to_id, Transport& to) {
    constexpr int kWaitMs = 20000;
    from.Send(to_id, EncodeMessage(AdvanceRequest{7}));
    PeerId sender;
    Frame frame;
    ASSERT_TRUE(to.Receive(kWaitMs, &sender, &frame));
    AdvanceRequest request;
    ASSERT_TRUE(DecodeMessage(frame, &request).ok());
    EXPECT_EQ(request.clock, 7);
  }
  void DeliverBothWays() {
    Deliver(*dialer_, kListener, *listener_);
    Deliver(*listener_, kDialer, *dialer_);
  }

  std::unique_ptr<Transport> listener_, dialer_;
  std::string address_;
};

TEST(NearAddress, OnlyOfPortsOfTheLoopback) {
  EXPECT_EQ(NearOf("tcp://127.0.0.1:70"), "ipc://@hdps/127.0.0.1:70");
  EXPECT_EQ(NearOf("localhost:70"), NearOf("tcp://127.0.0.1:70"));
  EXPECT_NE(NearOf("tcp://127.0.0.2:70"), NearOf("tcp://127.0.0.1:70"));
  for (const char* other : {"tcp://127.0.0.1:0", "tcp://10.0.0.1:70", "tcp://*:70", "ipc:///tmp/a",
                            "inproc://a", "tcp://machine:70"}) {
    EXPECT_EQ(NearOf(other), "") << other;
  }
}

TEST_F(NearPathTest, IsTakenWhereBothShare) {
  Open(kShared, kShared);
  DeliverBothWays();
  EXPECT_TRUE(OwnUserListens(NearOf(address_)));
  EXPECT_GE(Connections(NearOf(address_)), 1);
  listener_.reset();
  EXPECT_FALSE(OwnUserListens(NearOf(address_)));
}

TEST_F(NearPathTest, IsLeftAloneByWhoSharesNothing) {
  Open(kShared, 0);
  DeliverBothWays();
  EXPECT_EQ(Connections(NearOf(address_)), 0);
}

TEST_F(NearPathTest, IsNotMissedWhereNobodyListens) {
  Open(0, kShared);
  EXPECT_FALSE(OwnUserListens(NearOf(address_)));
  DeliverBothWays();
}

// The name is gone with who had it: the next who listens at the port has it again.
TEST_F(NearPathTest, IsThereAgainForASuccessor) {
  Open(kShared, kShared);
  DeliverBothWays();
  listener_.reset();
  TransportOptions options = {.self = PeerId{300}};
  options.shared_bytes_per_peer = kShared;
  listener_ = NewZmqTransport(options);
  ASSERT_TRUE(listener_->Listen(address_).ok());
  ASSERT_TRUE(dialer_->Connect(PeerId{300}, address_).ok());
  Deliver(*dialer_, PeerId{300}, *listener_);
  EXPECT_GE(Connections(NearOf(address_)), 1);
}

}  // namespace
}  // namespace hdps
