// The connections that one transport has dialed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "common/net/callers.h"
#include "common/net/transport.h"
#include "common/net/zmq/data_link.h"
#include "common/net/zmq/watched_socket.h"

namespace hdps {

// Returns the role that a listener dialed as `peer` must have a key of.
KeyRole ListenerRole(PeerId peer);

// Invariant: no two links dial the same address, and every peer has at most one link. With keys, a
// link goes to the holder of one of the listener's keys in the list. While the listener accepts
// none of them, the next one is tried every second.
class Links {
 public:
  struct Link {
    PeerId peer;
    std::string address;
    std::string listener_key;  // Empty without keys.
    WatchedSocket connection;
    size_t attempt = 0;
    int64_t dialed_ms = 0;
    bool told = false;
    bool refused = false;  // The handshake failed; libzmq does not dial again.
    // The link to the data port that the address names, if we are not a guest. All frames then
    // travel there. If null, they travel over `connection`.
    std::unique_ptr<DataLink> data;
  };

  Links(zmq::context_t& context, const TransportOptions& options)
      : context_(context), options_(options) {}

  size_t size() const { return links_.size(); }
  Link& operator[](size_t i) { return links_[i]; }
  Link* To(PeerId peer);  // Returns null if `peer` was not dialed.

  Status Connect(PeerId peer, const std::string& text);
  void HangUp(PeerId peer);
  // Acts on changed keys: redials listeners whose key was revoked, and all listeners if our own key
  // changed.
  void OnNewKeys(const CurveKeys& own_before, int64_t now_ms);
  // Checks handshakes, and redials with another key if one failed.
  void Maintain(int64_t now_ms);
  // Takes the listener's answer about the session of `link.data`. Returns the number of waiting
  // frames that were dropped because there was no room.
  size_t OnSessionAnswer(Link& link, const Frame& frame);

 private:
  const KeyRing* ring() const { return options_.keys ? &options_.keys->ring() : nullptr; }
  Result<Link> Dial(PeerId peer, const std::string& endpoint, size_t attempt);
  void AskForSession(Link& link);
  bool OwnIsGuest() const;
  void DialAnew(Link& link, size_t attempt, int64_t now_ms);

  zmq::context_t& context_;
  const TransportOptions& options_;
  std::vector<Link> links_;
  std::map<PeerId, uint64_t> dials_;  // Number of dials of each peer.
};

}  // namespace hdps
