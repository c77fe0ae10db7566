// The sockets on which one transport listens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "common/net/address.h"
#include "common/net/guest_share.h"
#include "common/net/transport.h"
#include "common/net/zmq/authenticator.h"
#include "common/net/zmq/connection_limits.h"
#include "common/net/zmq/data_sessions.h"
#include "common/net/zmq/open_connections.h"
#include "common/net/zmq/watched_socket.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {

// Invariant: each address has one listener that accepts connections, or waits to be bound again.
// With keys, that listener has our own current key. Listeners with earlier keys keep their
// connections until one of their keys is revoked. Data ports have no keys and stay.
class Listeners {
 public:
  Listeners(zmq::context_t& context, const TransportOptions& options)
      : context_(context), options_(options), limits_(options.limits, open_) {}

  size_t size() const { return routers_.size(); }
  zmq::socket_t& operator[](size_t i) { return routers_[i].connections.socket(); }
  // Is true for the socket of a data port, which accepts everybody.
  bool data(size_t i) const { return routers_[i].data; }
  uint64_t number(size_t i) const { return routers_[i].number; }
  const std::string& own_key(size_t i) const { return routers_[i].own_key; }

  // Binds an address. With TransportOptions::data_port, opens a data port beside a tcp port: the
  // one that the address names, else the one after its port, else any.
  Result<std::string> Listen(const std::string& text);
  // Acts on changed keys: listens under our own current key. If a key that was accepted before is
  // now revoked, all connections end first, and peers that are still allowed connect again.
  void OnNewKeys(Authenticator& authenticator, int64_t now_ms);
  // Binds addresses that could not be bound yet, counts handshakes, and enforces the limits on
  // connections.
  void Maintain(int64_t now_ms);

  // Notes that a guest's frame from listener `i` is being served, until EndService() or the next
  // BeginService().
  void BeginService(size_t i, int64_t began_ns) {
    if (options_.guests_rest) service_ = {routers_[i].number, began_ns};
  }
  void EndService(MonotonicClock& clock);
  // Is true while guests have used up their share, so this listener must not be read.
  bool Rests(size_t i, int64_t now_ns) const { return routers_[i].guests.Rests(now_ns); }
  // Adds two items for each listener, its socket and its events. Returns the milliseconds after
  // which the first resting listener may be read again.
  int64_t AddTo(std::vector<zmq_pollitem_t>* items, int64_t now_ns);

  // Reads connection events. Call it if an item of events is ready.
  void TakeEvents();
  // Is true if listener `i` speaks CURVE.
  bool has_keys(size_t i) const { return !routers_[i].own_key.empty(); }
  void OnMessage(const Arrival& arrival, bool refused);

  // Returns false if there is no such connection, or its queue is full.
  bool SendToCaller(const CallerId& id, const Frame& frame, const std::vector<SharedBlock>& blocks);
  // Sends on the connection of the session's last message. Returns false if there was none yet.
  bool SendInSession(DataSessions::Session& session, const Frame& frame,
                     const std::vector<SharedBlock>& blocks);

  const HandshakeCounts& handshakes() const { return handshakes_; }
  const ConnectionLimits& limits() const { return limits_; }

 private:
  struct Router {
    std::string endpoint;  // Empty once it accepts no more connections.
    std::string own_key;   // Public; empty without keys.
    WatchedSocket connections;
    uint64_t number = 0;  // Unique for all time.
    bool data = false;
    GuestShare guests = {};
  };
  struct Service {
    uint64_t listener = 0;
    int64_t began_ns = 0;
  };
  const KeyRing* ring() const { return options_.keys ? &options_.keys->ring() : nullptr; }
  Router NewRouter();
  Result<std::string> ListenForData(Address asked, const std::string& dialed);
  void BindAnew();

  zmq::context_t& context_;
  const TransportOptions& options_;
  std::vector<Router> routers_;
  std::vector<std::string> to_bind_;
  HandshakeCounts handshakes_;
  uint64_t last_number_ = 0;
  std::optional<Service> service_;
  SystemConnections open_;
  ConnectionLimits limits_;
};

}  // namespace hdps
