// One scheduler from its first frame to its last: the node, its loop, and the signal to stop.
#pragma once

#include <atomic>

#include "common/net/transport.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "scheduler/scheduler_node.h"

namespace hdps {

struct SchedulerExit {
  int status = 0;
  std::string reason;
};

// Runs `node` over `transport`, which already listens, until the job is over. `stop` becoming true
// drains the job; it may be null.
SchedulerExit RunSchedulerProcess(SchedulerNode& node, Transport& transport, MonotonicClock& clock,
                                  const std::atomic<bool>* stop);

}  // namespace hdps
