// What a worker sends to one server, and the number under which the answers come back.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/ids.h"
#include "common/net/frame.h"

namespace hdps {

// Numbers the compute side's outstanding requests; chosen by it, never reused.
using Ticket = Id<struct TicketTag, uint64_t>;

// One request to one server: a frame made by EncodeMessage.
struct ServerRequest {
  ServerId server;
  Frame frame;
  // Sent instead, under the same id, when the server does not know the key list that `frame` names:
  // the same request with its keys.
  std::optional<Frame> whole = {};
};

}  // namespace hdps
