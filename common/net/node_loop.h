// Runs a node over a transport: the one loop that all three roles share.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "common/base/exit_status.h"
#include "common/net/node.h"
#include "common/net/transport.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {

struct NodeLoopOptions {
  int64_t tick_ms = 20;                     // OnTick is called at least this often.
  int64_t drain_ms = 200;                   // Time for sending the remaining frames after done().
  const std::atomic<bool>* stop = nullptr;  // Set to true to ask the node to stop; or null.
  std::string stop_reason;                  // The reason given to the node then.
  int64_t leave_ms = 0;  // Above 0: the node is asked to leave the cluster, within this time.
  // Called once per turn on the loop thread, before ticks: moves results of other threads into the
  // node.
  std::function<void()> on_turn;
  // Called once per turn, before frames go out: an end that it returns is the loop's at once, and
  // the node sends nothing more.
  std::function<std::optional<ProcessEnd>()> end_now;
};

// Passes frames and ticks to `node` until it is done, and returns its exit status and reason.
// transport.Wake() makes the loop ask the node for output.
ProcessEnd RunNodeLoop(Node& node, Transport& transport, MonotonicClock& clock,
                       const NodeLoopOptions& options);

}  // namespace hdps
