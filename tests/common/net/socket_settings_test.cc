// Tests how long a connection to an absent peer is kept, and which side notices.
#include "common/net/zmq/socket_settings.h"

#include <gtest/gtest.h>

namespace hdps {
namespace {

// libzmq 4.3.4 aborts when its own heartbeat is due on a connection that failed while the queue
// behind it was full. A flooding peer that dies would then end the listener.
TEST(SocketSettings, SilentPeersAreNoticedByTheKernelAndNotByBeatsOfTheLibrary) {
  zmq::context_t context;
  zmq::socket_t listener = NewListener(context, {}, nullptr);
  zmq::socket_t dialer = NewDialer(context, {}, nullptr, "");
  for (zmq::socket_t* socket : {&listener, &dialer}) {
    EXPECT_EQ(socket->get(zmq::sockopt::heartbeat_ivl), 0);
    EXPECT_EQ(socket->get(zmq::sockopt::tcp_keepalive), 1);
    const int silent_s = socket->get(zmq::sockopt::tcp_keepalive_idle) +
                         socket->get(zmq::sockopt::tcp_keepalive_intvl) *
                             socket->get(zmq::sockopt::tcp_keepalive_cnt);
    EXPECT_LE(silent_s, 30);
    EXPECT_LE(socket->get(zmq::sockopt::tcp_maxrt), 30000);
    EXPECT_GT(socket->get(zmq::sockopt::tcp_maxrt), 0);
  }
}

// A stranger can make a listener hold at most the bytes of one message.
TEST(SocketSettings, PartsHaveTheLengthThatWasAsked) {
  zmq::context_t context;
  TransportOptions options;
  options.part_bytes_max = 1 << 20;
  EXPECT_EQ(NewListener(context, options, nullptr).get(zmq::sockopt::maxmsgsize), 1 << 20);
  EXPECT_EQ(NewDialer(context, options, nullptr, "").get(zmq::sockopt::maxmsgsize), 1 << 20);
  EXPECT_EQ(NewListener(context, {}, nullptr).get(zmq::sockopt::maxmsgsize),
            static_cast<int64_t>(kFrameBytesMax));
}

}  // namespace
}  // namespace hdps
