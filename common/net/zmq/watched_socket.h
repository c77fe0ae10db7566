// A socket and how the handshakes of its connections end.
#pragma once

#include <cstdint>
#include <utility>
#include <zmq.hpp>

namespace hdps {

struct HandshakeCounts {
  uint64_t opened = 0, finished = 0, failed = 0;
};

// Invariant: what libzmq tells of the socket is never waited for by libzmq, and ends before the
// socket does.
class WatchedSocket {
 public:
  // `watch`: handshakes are counted.
  WatchedSocket(zmq::context_t& context, zmq::socket_t socket, bool watch);
  ~WatchedSocket() { StopWatching(); }
  WatchedSocket(WatchedSocket&& other) noexcept
      : socket_(std::move(other.socket_)), events_(std::move(other.events_)) {}
  WatchedSocket& operator=(WatchedSocket&& other) noexcept;
  WatchedSocket(const WatchedSocket&) = delete;
  WatchedSocket& operator=(const WatchedSocket&) = delete;

  zmq::socket_t& socket() { return socket_; }
  // What has happened since the last call.
  HandshakeCounts TakeHandshakes();

 private:
  void StopWatching();

  zmq::socket_t socket_;
  zmq::socket_t events_;
};

}  // namespace hdps
