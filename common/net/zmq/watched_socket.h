// A socket, who connects to it, and how the handshakes end.
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

// What libzmq has accepted, or has closed since.
struct ConnectionEvent {
  bool opened = false;
  int fd = -1;
  std::string endpoint;  // Where it was accepted.
};

// Invariant: what libzmq tells of the socket is never waited for by libzmq, and ends before the
// socket does.
class WatchedSocket {
 public:
  // `watch`: connections and handshakes are told.
  WatchedSocket(zmq::context_t& context, zmq::socket_t socket, bool watch);
  ~WatchedSocket() { StopWatching(); }
  WatchedSocket(WatchedSocket&& other) noexcept
      : socket_(std::move(other.socket_)), events_(std::move(other.events_)) {}
  WatchedSocket& operator=(WatchedSocket&& other) noexcept;
  WatchedSocket(const WatchedSocket&) = delete;
  WatchedSocket& operator=(const WatchedSocket&) = delete;

  zmq::socket_t& socket() { return socket_; }
  // Readable where TakeHandshakes() has not taken all, of a socket that is watched.
  int events_fd() { return events_.get(zmq::sockopt::fd); }
  // What has happened since the last call; connections are told one by one.
  HandshakeCounts TakeHandshakes(const std::function<void(const ConnectionEvent&)>& tell = {});

 private:
  void StopWatching();

  zmq::socket_t socket_;
  zmq::socket_t events_;
};

}  // namespace hdps
