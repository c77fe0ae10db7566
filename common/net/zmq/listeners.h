// The sockets at which one transport listens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "common/net/address.h"
#include "common/net/transport.h"
#include "common/net/zmq/authenticator.h"
#include "common/net/zmq/connection_limits.h"
#include "common/net/zmq/data_sessions.h"
#include "common/net/zmq/open_connections.h"
#include "common/net/zmq/watched_socket.h"

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

  // With an authenticated data plane, opens a port for data beside a tcp port: the one that the
  // address names, else the one after its port, else any.
  Result<std::string> Listen(const std::string& text);
  // The ring is another: listens under our own key of now. With a revoked key among those that were
  // let in, all connections end first, and whoever is still allowed comes again.
  void OnNewKeys(Authenticator& authenticator, int64_t now_ms);
  // Binds what could not be bound yet, counts handshakes, and holds connections to their limits.
  void Tend(int64_t now_ms);

  // Ready to be read where somebody has connected or gone: then TakeEvents() is due.
  int events_fd(size_t i) { return routers_[i].connections.events_fd(); }
  void TakeEvents(int64_t now_ms);
  // Whether messages of this listener came sealed.
  bool sealed(size_t i) const { return !routers_[i].own_key.empty(); }
  void OnMessage(const Arrival& arrival, bool refused, int64_t now_ms);

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
  SystemConnections open_;
  ConnectionLimits limits_;
};

}  // namespace hdps
