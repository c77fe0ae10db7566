// A whole worker in one call: its node on a loop thread, its compute side on another.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/ids.h"
#include "common/job/job.h"
#include "common/net/transport.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "worker/step/stage.h"
#include "worker/step/step_report.h"

namespace hdps {

struct WorkerProcessOptions {
  std::shared_ptr<const Job> job;
  PeerId self;
  std::string scheduler_address;
  int32_t rank = -1;                          // -1: the scheduler picks.
  uint32_t num_servers = 0, num_workers = 0;  // As told on the command line; 0 = not told.
  std::string host;                           // For people: host name and process number.
  // Where the ranks of an allreduce reach this one; beyond loopback only with --insecure.
  std::string collective_host = "127.0.0.1";
  const std::atomic<bool>* stop = nullptr;  // Becomes true on SIGTERM; may be null.
  AfterStep after_step;                     // May be empty.
};

struct WorkerExit {
  int status = 0;  // 0 done, 2 the operator is mistaken, 3 the world failed.
  std::string reason;
  StepTimes times;  // Of all steps this worker has done.
};

// Joins, trains what the scheduler commands, and returns when the job has ended for this worker.
// The calling thread becomes the loop thread; `transport` belongs to it.
WorkerExit RunWorkerProcess(const WorkerProcessOptions& options, Transport& transport,
                            MonotonicClock& clock, FileSystem& files, Executor& executor);

}  // namespace hdps
