// A job in this process whose steps the caller drives, one at a time.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/bounded_queue.h"
#include "common/platform/executor.h"
#include "tools/local_cluster.h"

namespace hdps {

// For a training loop of one's own: what happens between two steps is the caller's. The job is that
// of RunLocalCluster, so it evaluates, saves checkpoints and ends with the same parameters, bit for
// bit, as a run that nobody interrupts.
//
// Invariant: between two calls no worker computes. Used by one thread.
class SteppedRun {
 public:
  // Starts the job. `options.after_step` and `options.stop` are the run's own and have to be empty.
  // `files` and `clock` must outlive it.
  SteppedRun(LocalClusterOptions options, FileSystem& files, MonotonicClock& clock);
  // Stops the job if it has not ended: it is drained and saved, as after a stop signal.
  ~SteppedRun();

  // Trains the next step on every worker: a report of each, in the order of their ids. Nothing when
  // the job has no more steps, or has failed: Finish() says which.
  std::optional<std::vector<StepReport>> Step();
  // Trains all that is left without stopping, and says how the job ended.
  Result<ProcessEnd> Finish();

 private:
  void LetGo();  // Nobody waits for the caller from now on.

  struct Done {
    WorkerId worker;
    StepReport report;
  };

  const uint32_t num_workers_;
  std::atomic<bool> stop_ = false;
  bool begun_ = false;                                      // The first step needs no leave.
  std::vector<std::unique_ptr<BoundedQueue<bool>>> leave_;  // To go on, a queue a worker.
  BoundedQueue<Done> done_;
  std::optional<Result<ProcessEnd>> end_;
  std::unique_ptr<Thread> thread_;  // Last: it uses all of the above.
};

}  // namespace hdps
