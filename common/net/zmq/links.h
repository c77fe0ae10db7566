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

// The role whose key the listener has that is dialed as `peer`.
KeyRole ListenerRole(PeerId peer);

// Invariant: every link dials another address, and every peer has at most one link. With keys a
// link is to the holder of one of the listener's keys in the list; while none of them is accepted
// there, the next one is tried every second.
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
    bool refused = false;  // libzmq dials no more then.
    // Where the address names a port for data, and we are no guest: frames travel there alone.
    // Null: over `connection`.
    std::unique_ptr<DataLink> data;
  };

  Links(zmq::context_t& context, const TransportOptions& options)
      : context_(context), options_(options) {}

  size_t size() const { return links_.size(); }
  Link& operator[](size_t i) { return links_[i]; }
  Link* To(PeerId peer);  // Null: not dialed.

  Status Connect(PeerId peer, const std::string& text);
  void HangUp(PeerId peer);
  // The ring is another: whom we dialed under a key that is revoked, and all where our own has
  // changed, are dialed anew.
  void OnNewKeys(const CurveKeys& own_before, int64_t now_ms);
  // Looks at the handshakes, and dials with another key where one failed.
  void Tend(int64_t now_ms);
  // The listener has said something of the session of `link.data`. Returns how many frames that
  // waited for it there was no room for.
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
  std::map<PeerId, uint64_t> dials_;  // How often each was dialed.
};

}  // namespace hdps
