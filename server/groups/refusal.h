// How a request that cannot be served is answered.
#pragma once

#include <optional>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/net/frame.h"

namespace hdps {

// The reply to `request`, of its own kind, that says why; none where its kind has no such reply.
// `finished`: the steps that every worker has finished. View and sender are the caller's to fill.
std::optional<Frame> RefusalOf(const Frame& request, const Status& why, Clock finished);

}  // namespace hdps
