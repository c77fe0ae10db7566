// Creates the sockets of a transport with their options, with keys and without.
#pragma once

#include <string>
#include <zmq.hpp>

#include "common/net/keys/key_ring.h"
#include "common/net/transport.h"

namespace hdps {

// Returns a ROUTER that listens under `ring.own`; `ring` is null without keys.
zmq::socket_t NewListener(zmq::context_t& context, const TransportOptions& options,
                          const KeyRing* ring);
// Returns a DEALER that dials under `ring.own` and connects only to the holder of `listener_key`.
zmq::socket_t NewDialer(zmq::context_t& context, const TransportOptions& options,
                        const KeyRing* ring, const std::string& listener_key);

}  // namespace hdps
