// The sockets at which one transport listens.
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

// Invariant: each address has one listener that takes connections, or waits to be bound again; with
// keys that is one of our own key. Others of before keep their connections until a key of them is
// revoked. Ports for data know no keys and stay.
class Listeners {
 public:
  Listeners(zmq::context_t& context, const TransportOptions& options)
      : context_(context), options_(options), limits_(options.limits, open_) {}

  size_t size() const { return routers_.size(); }
  zmq::socket_t& operator[](size_t i) { return routers_[i].connections.socket(); }
  // Whether socket `i` is that of a port for data, which lets in everybody.
  bool data(size_t i) const { return routers_[i].data; }
  uint64_t number(size_t i) const { return routers_[i].number; }
  const std::string& own_key(size_t i) const { return routers_[i].own_key; }

  // With TransportOptions::data_port, opens a port for data beside a tcp port: the one that the
  // address names, else the one after its port, else any.
  Result<std::string> Listen(const std::string& text);
  // The ring is another: listens under our own key of now. With a revoked key among those that were
  // let in, all connections end first, and whoever is still allowed comes again.
  void OnNewKeys(Authenticator& authenticator, int64_t now_ms);
  // Binds what could not be bound yet, counts handshakes, and holds connections to their limits.
  void Tend(int64_t now_ms);

  // What came by listener `i` from a guest is served from now on, until EndService() or the next.
  void BeginService(size_t i, int64_t began_ns) { service_ = {routers_[i].number, began_ns}; }
  void EndService(MonotonicClock& clock);
  // Whether guests have had their share, so that this listener is not to be read.
  bool Rests(size_t i, int64_t now_ns) const { return routers_[i].guests.Rests(now_ns); }
  // Adds two items for each listener, its socket and its events. Returns after how many
  // milliseconds one that rests may be read again.
  int64_t AddTo(std::vector<zmq_pollitem_t>* items, int64_t now_ns);

  // Due where an item of events is ready: somebody has connected or gone.
  void TakeEvents();
  // Whether this listener speaks CURVE.
  bool has_keys(size_t i) const { return !routers_[i].own_key.empty(); }
  void OnMessage(const Arrival& arrival, bool refused);

  // False: there is no such connection, or its queue is full.
  bool SendToCaller(const CallerId& id, const Frame& frame, const std::vector<SharedBlock>& blocks);
  // By the connection that the session's last message came by; false also before there was one.
  bool SendInSession(DataSessions::Session& session, const Frame& frame,
                     const std::vector<SharedBlock>& blocks);

  const HandshakeCounts& handshakes() const { return handshakes_; }
  const ConnectionLimits& limits() const { return limits_; }

 private:
  struct Router {
    std::string endpoint;  // Where it takes connections; empty: nowhere any more.
    std::string own_key;   // Public; empty without keys.
    WatchedSocket connections;
    uint64_t number = 0;  // Of no other, ever.
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
