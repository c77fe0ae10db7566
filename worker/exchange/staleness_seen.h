// Counts how old the rows are with which a worker computes.
#pragma once

#include <algorithm>
#include <span>

#include "common/protocol/row_messages.h"
#include "common/telemetry/meters.h"

namespace hdps {

// Counts the clocks by which step `clock` is ahead of the slowest worker, as far as the servers
// knew when they read its rows. Without replies there is nothing to count.
inline void CountStaleness(Clock clock, std::span<const PullReply> replies, Meters* meters) {
  if (replies.empty()) return;
  const Clock slowest = std::ranges::min(replies, {}, &PullReply::min_clock).min_clock;
  meters->Observe(FigureNamed("hdps_worker_staleness_clocks"), std::max<Clock>(clock - slowest, 0));
}

}  // namespace hdps
