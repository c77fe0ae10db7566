// How the sockets of one transport are set, with keys and without.
#pragma once

#include <string>
#include <zmq.hpp>

#include "common/net/keys/key_ring.h"
#include "common/net/transport.h"

namespace hdps {

// A ROUTER to listen with, as `ring.own`; null: without keys.
zmq::socket_t NewListener(zmq::context_t& context, const TransportOptions& options,
                          const KeyRing* ring);
// A DEALER to dial with, as `ring.own`, whoever has the secret of `listener_key`.
zmq::socket_t NewDialer(zmq::context_t& context, const TransportOptions& options,
                        const KeyRing* ring, const std::string& listener_key);

}  // namespace hdps
