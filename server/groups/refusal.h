// Makes the replies to requests that cannot be served.
#pragma once

#include <optional>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/net/frame.h"

namespace hdps {

// Returns a reply of the request's own kind with the reason; none if that kind has no such reply.
// `finished`: number of steps that every worker has finished. The caller fills in view and sender.
std::optional<Frame> RefusalOf(const Frame& request, const Status& why, Clock finished);

}  // namespace hdps
