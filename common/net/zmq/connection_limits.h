// Holds whoever connects to the limits of peer_limits.h, by ending single connections.
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

// A message is attributed to the connection that its descriptor is by now, if that is of the same
// address. What a closed one has left in libzmq's queues may so be attributed to its successor, but
// no more bytes of it than that has itself received.
//
// Invariant: a connection is here from the event that it was accepted until it is gone or ended,
// and after each call no count is above its limit. Bytes are those of the last Look(), so they may
// be above theirs for as long as that is ago.
class ConnectionLimits {
 public:
  ConnectionLimits(const PeerLimits& limits, OpenConnections& open)
      : limits_(limits), open_(open) {}

  // What the socket `listener`, a number of its own, tells of a connection.
  void OnEvent(const ConnectionEvent& event, uint64_t listener);
  // All its connections are gone.
  void ForgetListener(uint64_t listener);
  bool Knows(int connection) const { return connections_.contains(connection); }
  // `refused`: it was not handed out, as something was wrong with it. False: nobody has told us of
  // its connection yet, or it is ended.
  bool OnMessage(const Arrival& arrival, bool refused);
  // To be called often: looks at what has arrived of each connection every `kLookEveryMs`.
  void Look(int64_t now_ms);

  size_t size() const { return connections_.size(); }
  uint64_t held_bytes() const { return held_bytes_; }  // Of all, as of the last Look().
  const EndedConnections& ended() const { return ended_; }

  static constexpr int64_t kLookEveryMs = 100;

 private:
  struct Connection {
    uint64_t serial = 0, cookie = 0, listener = 0;
    std::string address;
    bool heard = false;  // A frame of it was good.
    uint32_t refused = 0;
    uint64_t received = 0, handed_out = 0;
    uint64_t held() const { return received - std::min(received, handed_out); }
  };
  using ByDescriptor = std::unordered_map<int, Connection>;

  void Open(int fd, const std::string& endpoint, uint64_t listener);
  void End(ByDescriptor::iterator which, PeerLimit why);
  void Tell(const Connection& connection, PeerLimit why);
  void Forget(ByDescriptor::iterator which);
  // False where it is gone.
  bool Count(int fd, Connection& connection);
  void EndLargestHolders();

  const PeerLimits limits_;
  OpenConnections& open_;
  ByDescriptor connections_;
  std::map<uint64_t, int> unheard_;  // Descriptors by serial, so the oldest first.
  uint64_t last_serial_ = 0, held_bytes_ = 0;
  int64_t looked_ms_ = 0;
  EndedConnections ended_;
  std::set<std::pair<std::string, PeerLimit>> told_;
};

}  // namespace hdps
