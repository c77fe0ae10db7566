// Enforces the limits of peer_limits.h by ending single connections.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/net/peer_limits.h"
#include "common/net/zmq/open_connections.h"
#include "common/net/zmq/parts.h"
#include "common/net/zmq/watched_socket.h"

namespace hdps {

// Counts connections and what each of them holds. A message is attributed to the connection that
// has its file descriptor now, if the address is the same. So a message that a closed connection
// left in libzmq's queues may be attributed to the next connection with that descriptor, but for at
// most the bytes that this connection has itself received.
//
// Invariant: a connection is known from its accept event until it is gone or was ended, and after
// each call no count is above its limit. Byte counts are those of the last Look(), so bytes may
// exceed their limit until the next.
class ConnectionLimits {
 public:
  ConnectionLimits(const PeerLimits& limits, OpenConnections& open)
      : limits_(limits), open_(open) {}

  // Takes an event of the socket with number `listener`.
  void OnEvent(const ConnectionEvent& event, uint64_t listener);
  // Forgets all connections of a listener.
  void ForgetListener(uint64_t listener);
  bool Knows(int connection) const { return connections_.contains(connection); }
  // Counts a message. `refused` means that it was not handed out because something was wrong with
  // it. Returns false if the connection is not known, because its event has not arrived yet or it
  // was ended.
  bool OnMessage(const Arrival& arrival, bool refused);
  // Looks at the bytes that have arrived on each connection, at most every `kLookEveryMs`. Call it
  // often.
  void Look(int64_t now_ms);

  size_t size() const { return connections_.size(); }
  uint64_t held_bytes() const { return held_bytes_; }  // Of all connections, as of the last Look().
  const EndedConnections& ended() const { return ended_; }

  static constexpr int64_t kLookEveryMs = 100;

 private:
  struct Connection {
    uint64_t serial = 0, cookie = 0, listener = 0;
    std::string address;
    bool heard = false;  // A good frame has arrived.
    uint32_t refused = 0;
    uint64_t received = 0, handed_out = 0;
    uint64_t held() const { return received - std::min(received, handed_out); }
  };
  using ByDescriptor = std::unordered_map<int, Connection>;

  void Open(int fd, const std::string& endpoint, uint64_t listener);
  void End(ByDescriptor::iterator which, PeerLimit why);
  void Tell(const Connection& connection, PeerLimit why);
  void Forget(ByDescriptor::iterator which);
  // Updates the byte counts. Returns false if the connection is gone.
  bool Count(int fd, Connection& connection);
  void EndLargestHolders();

  const PeerLimits limits_;
  OpenConnections& open_;
  ByDescriptor connections_;
  std::map<uint64_t, int> unheard_;  // Descriptors by serial, so the oldest comes first.
  uint64_t last_serial_ = 0, held_bytes_ = 0;
  int64_t looked_ms_ = 0;
  EndedConnections ended_;
  std::set<std::pair<std::string, PeerLimit>> told_;
};

}  // namespace hdps
