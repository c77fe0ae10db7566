// Runs a scheduler's node on its loop.
#include "scheduler/scheduler_process.h"

#include "common/net/node_loop.h"

namespace hdps {

SchedulerExit RunSchedulerProcess(SchedulerNode& node, Transport& transport, MonotonicClock& clock,
                                  const std::atomic<bool>* stop) {
  bool stop_requested = false;
  NodeLoopOptions loop;
  loop.on_turn = [&] {
    if (stop == nullptr || stop_requested || !stop->load()) return;
    stop_requested = true;
    node.RequestStop("the scheduler was told to stop");
  };
  SchedulerExit exit;
  exit.status = RunNodeLoop(node, transport, clock, loop);
  exit.reason = node.exit_reason();
  return exit;
}

}  // namespace hdps
