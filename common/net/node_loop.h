// Runs a node over a transport: the one loop that all three roles share.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "common/base/exit_status.h"
#include "common/net/node.h"
#include "common/net/transport.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {

struct NodeLoopOptions {
  int64_t tick_ms = 20;                     // OnTick at least this often.
  int64_t drain_ms = 200;                   // After done(): how long to keep sending what is left.
  const std::atomic<bool>* stop = nullptr;  // Becoming true asks the node to stop, once; or null.
  std::string stop_reason;                  // What it is told then.
  // Run once a turn on the loop thread, before ticks: moves work of other threads into the node.
  std::function<void()> on_turn;
};

// Feeds frames and ticks to `node` until it is done; returns its exit status and reason. Whoever
// calls transport.Wake() makes it ask the node for its output.
ProcessEnd RunNodeLoop(Node& node, Transport& transport, MonotonicClock& clock,
                       const NodeLoopOptions& options);

}  // namespace hdps
