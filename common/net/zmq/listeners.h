// The sockets at which one transport listens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "common/net/transport.h"
#include "common/net/zmq/authenticator.h"
#include "common/net/zmq/watched_socket.h"

namespace hdps {

// Invariant: each address has one listener that takes connections, or waits to be bound again; with
// keys that is one of our own key. Others of before keep their connections until a key of them is
// revoked.
class Listeners {
 public:
  Listeners(zmq::context_t& context, const TransportOptions& options)
      : context_(context), options_(options) {}

  size_t size() const { return routers_.size(); }
  zmq::socket_t& operator[](size_t i) { return routers_[i].connections.socket(); }
  const std::string& own_key(size_t i) const { return routers_[i].own_key; }

  Result<std::string> Listen(const std::string& text);
  // The ring is another: listens under our own key of now. With a revoked key among those that were
  // let in, all connections end first, and whoever is still allowed comes again.
  void OnNewKeys(Authenticator& authenticator);
  // Binds what could not be bound yet, and counts handshakes.
  void Tend();
  const HandshakeCounts& handshakes() const { return handshakes_; }

 private:
  struct Router {
    std::string endpoint;  // Where it takes connections; empty: nowhere any more.
    std::string own_key;   // Public; empty without keys.
    WatchedSocket connections;
  };
  const KeyRing* ring() const { return options_.keys ? &options_.keys->ring() : nullptr; }
  Router NewRouter();

  zmq::context_t& context_;
  const TransportOptions& options_;
  std::vector<Router> routers_;
  std::vector<std::string> to_bind_;
  HandshakeCounts handshakes_;
};

}  // namespace hdps
