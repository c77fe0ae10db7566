// Runs a table worker: its node on a loop thread, its calls on the caller's.
#pragma once

#include <memory>

#include "common/base/exit_status.h"
#include "common/base/status.h"
#include "common/net/transport.h"
#include "common/platform/monotonic_clock.h"
#include "worker/outside/table_worker.h"
#include "worker/role/worker_node.h"

namespace hdps {

struct TableProcessOptions {
  WorkerNodeOptions node;
  TableWorkerOptions worker;  // Its job is the node's.
  // Threads that share long lists of keys and rows; 0: one per core. Not used if worker.executor is
  // set.
  int threads = 0;
};

// A worker in the process of the program that has the model.
//
// Invariant: the loop thread runs from Join() until the job has ended for this worker or the object
// is deleted, which tells the scheduler that this worker cannot go on.
class TableProcess {
 public:
  // Joins the cluster and waits until the first step may begin. The loop thread owns `transport`.
  // Errors: kInvalidArgument if the scheduler refuses the worker, kUnavailable if it does not
  // answer or the job ends first; both say why.
  static Result<std::unique_ptr<TableProcess>> Join(const TableProcessOptions& options,
                                                    std::unique_ptr<Transport> transport,
                                                    MonotonicClock& clock);
  ~TableProcess();

  TableWorker& worker();
  // Ends this worker: `failure` is told to the scheduler, ok leaves a job that has ended. Waits for
  // the loop thread.
  ProcessEnd Leave(const Status& failure);

 private:
  struct Parts;
  explicit TableProcess(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace hdps
