// Sets the options of libzmq's sockets.
#include "common/net/zmq/socket_settings.h"

#include "common/net/frame.h"

namespace hdps {
namespace {

constexpr int kLingerMs = 1000;  // Time that closing waits for unsent messages.
constexpr int kHandshakeMs = 5000, kConnectMs = 5000;
constexpr int kReconnectMs = 50, kReconnectMaxMs = 1000;
// TCP keepalive lets the kernel notice within half a minute that a peer is gone without a word.
// That is longer than the largest frame takes on a slow network. Silent peers are probed, and
// unacknowledged bytes end the connection.
constexpr int kAskAfterS = 5, kAskEveryS = 5, kAskTimes = 5;
constexpr int kUnacknowledgedMs = 30000;

zmq::socket_t NewSocket(zmq::context_t& context, const TransportOptions& options,
                        zmq::socket_type type) {
  zmq::socket_t socket(context, type);
  socket.set(zmq::sockopt::linger, kLingerMs);
  socket.set(zmq::sockopt::sndhwm, static_cast<int>(options.queue_frames_max));
  socket.set(zmq::sockopt::rcvhwm, static_cast<int>(options.queue_frames_max));
  socket.set(zmq::sockopt::maxmsgsize, static_cast<int64_t>(options.part_bytes_max));
  socket.set(zmq::sockopt::handshake_ivl, kHandshakeMs);
  socket.set(zmq::sockopt::connect_timeout, kConnectMs);
  socket.set(zmq::sockopt::reconnect_ivl, kReconnectMs);
  socket.set(zmq::sockopt::reconnect_ivl_max, kReconnectMaxMs);
  // Heartbeats of libzmq are not used: 4.3.4 aborts when one is due on a connection that has failed
  // while its queue was full (stream_engine_base.cpp, out_event() behind an error).
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  socket.set(zmq::sockopt::tcp_keepalive_idle, kAskAfterS);
  socket.set(zmq::sockopt::tcp_keepalive_intvl, kAskEveryS);
  socket.set(zmq::sockopt::tcp_keepalive_cnt, kAskTimes);
  socket.set(zmq::sockopt::tcp_maxrt, kUnacknowledgedMs);
  socket.set(zmq::sockopt::ipv6, false);
  // With keys, this makes libzmq ask the authenticator. Without keys, a domain has one effect only:
  // it refuses strangers that speak ZMTP 1 or 2, or anything that looks like it. libzmq 4.3.4 may
  // abort on one while it closes.
  socket.set(zmq::sockopt::zap_domain, "hdps");
  return socket;
}

}  // namespace

zmq::socket_t NewListener(zmq::context_t& context, const TransportOptions& options,
                          const KeyRing* ring) {
  zmq::socket_t router = NewSocket(context, options, zmq::socket_type::router);
  // A caller that dials again with the same secret replaces its connection; Send() notices an
  // unknown one.
  router.set(zmq::sockopt::router_handover, true);
  router.set(zmq::sockopt::router_mandatory, true);
  if (ring != nullptr) {
    router.set(zmq::sockopt::curve_server, true);
    router.set(zmq::sockopt::curve_secretkey, ring->own.secret_key);
  }
  return router;
}

zmq::socket_t NewDialer(zmq::context_t& context, const TransportOptions& options,
                        const KeyRing* ring, const std::string& listener_key) {
  zmq::socket_t dealer = NewSocket(context, options, zmq::socket_type::dealer);
  if (ring != nullptr) {
    dealer.set(zmq::sockopt::curve_serverkey, listener_key);
    dealer.set(zmq::sockopt::curve_publickey, ring->own.public_key);
    dealer.set(zmq::sockopt::curve_secretkey, ring->own.secret_key);
  }
  return dealer;
}

}  // namespace hdps
