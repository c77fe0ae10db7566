// Runs the scheduler and the servers of a job in this process, with workers whose model is the
// caller's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/exit_status.h"
#include "common/base/status.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "tools/local_cluster.h"
#include "tools/served_job.h"
#include "worker/outside/table_process.h"

namespace hdps {

// A job of type tables in one process.
//
// Invariant: all workers have joined. The job goes on beside the caller until its workers have
// finished, it has failed, or the object is deleted, which stops it.
class LocalTables {
 public:
  // Starts the job and lets its options.num_workers workers join. `workers` has the options of
  // each, or is empty; the job in them is not used. Requires: options.after_step, .trace and
  // .stop are empty, because a caller has the steps in hand; `files` and `clock` outlive it.
  // Errors: kInvalidArgument if the job is refused; kUnavailable if it ends before it has begun.
  static Result<std::unique_ptr<LocalTables>> Start(LocalClusterOptions options,
                                                    std::vector<TableWorkerOptions> workers,
                                                    FileSystem& files, MonotonicClock& clock);
  ~LocalTables();

  // Each worker is for one thread at a time.
  TableProcess& worker(uint32_t rank) { return *workers_[rank]; }
  uint32_t num_workers() const { return static_cast<uint32_t>(workers_.size()); }

  // Asks the job to end in good order: it saves, and the workers' calls return kCancelled.
  void Stop() { stop_ = true; }
  // Ends the workers, with ok if their jobs have ended, and returns how the job did: its first
  // failure. Called again, it returns the same.
  ProcessEnd Close(const Status& failure = Status());

 private:
  LocalTables(LocalClusterOptions options, MonotonicClock& clock)
      : options_(std::move(options)), clock_(clock) {}
  Status Join(std::vector<TableWorkerOptions> workers);

  LocalClusterOptions options_;
  MonotonicClock& clock_;
  std::atomic<bool> stop_ = false;
  std::unique_ptr<ServedJob> members_;
  std::unique_ptr<Thread> scheduler_;  // Null after Close().
  ProcessEnd end_;                     // Written by that thread.
  std::vector<std::unique_ptr<TableProcess>> workers_;
};

}  // namespace hdps
