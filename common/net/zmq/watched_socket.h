// A socket together with its connection events and the results of its handshakes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <zmq.hpp>

namespace hdps {

struct HandshakeCounts {
  uint64_t opened = 0, finished = 0, failed = 0;
};

// A connection that libzmq has accepted or closed.
struct ConnectionEvent {
  bool opened = false;
  int fd = -1;
  std::string endpoint;  // The endpoint that accepted it.
};

// Invariant: libzmq never blocks on reporting events of the socket, and the reports end before the
// socket does.
class WatchedSocket {
 public:
  // `watch` turns the reports on.
  WatchedSocket(zmq::context_t& context, zmq::socket_t socket, bool watch);
  ~WatchedSocket() { StopWatching(); }
  WatchedSocket(WatchedSocket&& other) noexcept
      : socket_(std::move(other.socket_)), events_(std::move(other.events_)) {}
  WatchedSocket& operator=(WatchedSocket&& other) noexcept;
  WatchedSocket(const WatchedSocket&) = delete;
  WatchedSocket& operator=(const WatchedSocket&) = delete;

  zmq::socket_t& socket() { return socket_; }
  // A descriptor that is readable while TakeHandshakes() has events left; only for a watched
  // socket.
  int events_fd() { return events_.get(zmq::sockopt::fd); }
  // Returns the counts since the last call, and passes each connection event to `tell`.
  HandshakeCounts TakeHandshakes(const std::function<void(const ConnectionEvent&)>& tell = {});

 private:
  void StopWatching();

  zmq::socket_t socket_;
  zmq::socket_t events_;
};

}  // namespace hdps
