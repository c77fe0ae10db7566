// One request to one server, and the ticket under which replies are reported.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/ids.h"
#include "common/net/frame.h"

namespace hdps {

// Identifies outstanding requests of the compute side, which chooses the numbers; never reused.
using Ticket = Id<struct TicketTag, uint64_t>;

// One request to one server: a frame made by EncodeMessage.
struct ServerRequest {
  ServerId server;
  Frame frame;
  // The same request with its keys; sent under the same id if the server does not know the key list
  // that `frame` names.
  std::optional<Frame> whole = {};
  Clock step = -1;  // The step that a trace shows it in; -1: none.
};

}  // namespace hdps
