// Runs a whole worker in one call: its node on a loop thread, its compute side on another.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "common/base/exit_status.h"
#include "common/net/transport.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "worker/role/worker_node.h"
#include "worker/step/stage.h"
#include "worker/step/step_report.h"

namespace hdps {

class MemberWatch;
class RowCaches;

struct WorkerProcessOptions {
  WorkerNodeOptions node;
  // Address at which the ranks of an allreduce reach this one; beyond loopback only with
  // --insecure_collective.
  std::string collective_host = "127.0.0.1";
  const std::atomic<bool>* stop = nullptr;  // Becomes true on SIGTERM; may be null.
  int64_t leave_ms = 0;                     // Above 0: it makes the worker leave, within this time.
  AfterStep after_step;                     // May be empty.
  // Prints the lines of train.log_every_steps, on the compute thread; may be empty.
  std::function<void(const std::string&)> print = {};
  std::shared_ptr<RowCaches> rows = nullptr;  // Null: no parsed rows are kept.
  uint32_t number_here = 0;      // Index among the workers of its machine, which share GPUs.
  MemberWatch* watch = nullptr;  // Gets copies of the figures; null: nobody looks.
  // Servers take its requests in the order of a record: the steps for whose rows it asks at once,
  // as StepRunner::set_replay(). Null: they do not.
  const std::set<Clock>* replay = nullptr;
};

struct WorkerExit {
  ProcessEnd end;
  StepTimes times;  // Times of all steps of this worker.
};

// Joins the cluster, trains as the scheduler commands, and returns when the job has ended for this
// worker. The calling thread becomes the loop thread; `transport` belongs to it.
WorkerExit RunWorkerProcess(const WorkerProcessOptions& options, Transport& transport,
                            MonotonicClock& clock, FileSystem& files, Executor& executor);

}  // namespace hdps
