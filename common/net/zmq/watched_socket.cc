// Reads the events of a socket's monitor.
#include "common/net/zmq/watched_socket.h"

#include <atomic>
#include <cstring>
#include <string>

namespace hdps {
namespace {

constexpr int kFailed = ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                        ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
constexpr int kEvents =
    ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | kFailed;

}  // namespace

WatchedSocket::WatchedSocket(zmq::context_t& context, zmq::socket_t socket, bool watch)
    : socket_(std::move(socket)) {
  if (!watch) return;
  // A name that was used before may still be in use by a socket that is being closed.
  static std::atomic<uint64_t> number = 0;
  const std::string name = "inproc://handshakes-" + std::to_string(++number);
  if (zmq_socket_monitor(socket_.handle(), name.c_str(), kEvents) != 0) throw zmq::error_t();
  events_ = zmq::socket_t(context, zmq::socket_type::pair);
  // Without a limit, because libzmq would otherwise wait for room and stall all connections.
  events_.set(zmq::sockopt::rcvhwm, 0);
  events_.set(zmq::sockopt::linger, 0);
  events_.connect(name);
}

WatchedSocket& WatchedSocket::operator=(WatchedSocket&& other) noexcept {
  StopWatching();
  socket_ = std::move(other.socket_);
  events_ = std::move(other.events_);
  return *this;
}

void WatchedSocket::StopWatching() {
  if (events_.handle() == nullptr) return;
  zmq_socket_monitor(socket_.handle(), nullptr, 0);
  events_.close();
}

HandshakeCounts WatchedSocket::TakeHandshakes(
    const std::function<void(const ConnectionEvent&)>& tell) {
  HandshakeCounts counts;
  if (events_.handle() == nullptr) return counts;
  for (;;) {
    zmq::message_t event, endpoint;
    if (zmq_msg_recv(event.handle(), events_.handle(), ZMQ_DONTWAIT) < 0) return counts;
    uint16_t kind = 0;
    int32_t value = -1;
    if (event.size() >= sizeof(kind) + sizeof(value)) {
      std::memcpy(&kind, event.data(), sizeof(kind));
      std::memcpy(&value, event.data<char>() + sizeof(kind), sizeof(value));
    }
    // The second part is there once the first one is.
    if (event.more() && zmq_msg_recv(endpoint.handle(), events_.handle(), ZMQ_DONTWAIT) < 0) {
      return counts;
    }
    counts.opened += kind == ZMQ_EVENT_ACCEPTED;
    counts.finished += kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
    counts.failed += (kind & kFailed) != 0;
    if (tell && (kind == ZMQ_EVENT_ACCEPTED || kind == ZMQ_EVENT_DISCONNECTED)) {
      tell({kind == ZMQ_EVENT_ACCEPTED, value, endpoint.to_string()});
    }
  }
}

}  // namespace hdps
