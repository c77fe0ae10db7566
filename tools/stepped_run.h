// Runs a job in this process whose steps the caller drives one at a time.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/bounded_queue.h"
#include "common/platform/executor.h"
#include "tools/local_cluster.h"

namespace hdps {

// A job for a training loop of one's own: the caller acts between two steps. The job runs as in
// RunLocalCluster, so it evaluates, saves checkpoints and ends with the same parameters, bit for
// bit, as an uninterrupted run.
//
// Invariant: no worker computes between two calls. Used by one thread.
class SteppedRun {
 public:
  // Starts the job. Requires: `options.after_step` and `options.stop` are empty, because the run
  // sets them; `files` and `clock` outlive it.
  SteppedRun(LocalClusterOptions options, FileSystem& files, MonotonicClock& clock);
  // Stops the job if it has not ended: it drains and saves, as after a stop signal.
  ~SteppedRun();

  // Trains the next step on every worker and returns their reports in the order of worker ids.
  // Returns nothing if the job has no more steps or has failed; Finish() tells which.
  std::optional<std::vector<StepReport>> Step();
  // Return a worker's rank in the group that made the last step, and the number of ranks: what
  // get_rank() and get_group_size() are in MindSpore. kInvalidArgument before the first Step(), in
  // which the workers form the group, and for a worker that the run does not have.
  Result<uint32_t> rank(WorkerId worker) const;
  Result<uint32_t> group_size() const;
  // Trains all remaining steps without stopping and returns how the job ended.
  Result<ProcessEnd> Finish();

 private:
  void ReleaseWorkers();  // Lets the workers run without waiting for the caller from now on.

  struct Done {
    WorkerId worker;
    StepReport report;
  };

  const uint32_t num_workers_;
  std::atomic<bool> stop_ = false;
  // Is false until the first step, which the workers begin without permission.
  bool begun_ = false;
  std::vector<StepReport> last_;  // Reports of the last step; empty before the first.
  // Permissions to go on, one queue per worker.
  std::vector<std::unique_ptr<BoundedQueue<bool>>> permits_;
  BoundedQueue<Done> done_;
  std::optional<Result<ProcessEnd>> end_;
  std::unique_ptr<Thread> thread_;  // Last: it uses all members above.
};

}  // namespace hdps
