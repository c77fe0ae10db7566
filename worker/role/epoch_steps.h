// The steps of an epoch as one worker reads them, from any of them on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "worker/cache/hot_split.h"
#include "worker/exchange/node_channel.h"
#include "worker/step/step_pipeline.h"
#include "worker/step/step_window.h"

namespace hdps {

class ItemPool;

struct Job;

// Where in the data a step is.
struct EpochPosition {
  uint32_t epoch = 0;
  Clock epoch_start = 0;  // The clock at which the epoch began.
  Clock clock = 0;        // Of the step.
};

// How the steps are split, by what this worker trains.
struct EpochSplit {
  bool whole_batch = false;              // The layers of a cut model read the rows of all workers.
  std::span<const Key> dense_keys = {};  // Outlives the steps; see SplitPlan.
  std::shared_ptr<HotKeyRegistry> hot = nullptr;  // Null: no rows are kept here.
};

// Invariant: while it is open the window's first step is that of the position it was opened at, or
// behind as many as have been Pop()ped, of the parts and servers of the view it was opened in.
//
// Belongs to the trainer's thread.
class EpochSteps {
 public:
  // All of them outlive it.
  EpochSteps(const Job& job, FileSystem& files, NodeChannel& channel, MonotonicClock& time,
             Executor& executor)
      : job_(job), files_(files), channel_(channel), time_(time), executor_(executor) {}

  // Whether the next step that comes out is this one, in the view of now. kInvalidArgument where
  // the position is before its epoch.
  Result<bool> IsAt(const EpochPosition& position) const;
  // Reads from there on; what was read before is gone. `part`: the job of what is trained, which
  // outlives the steps.
  Status Open(const Job& part, const EpochPosition& position, const EpochSplit& split);
  void Close();

  // Requires: open.
  StepWindow& window() { return *window_; }
  // The first step of the window is done. Its rows that were refused count from now on.
  void Pop();
  uint64_t bad_rows() const { return bad_rows_; }  // In what was Pop()ped since Open().

 private:
  const Job& job_;
  FileSystem& files_;
  NodeChannel& channel_;
  MonotonicClock& time_;
  Executor& executor_;

  std::unique_ptr<StepPipeline> steps_;  // Null: closed.
  std::unique_ptr<StepWindow> window_;   // Of steps_.
  uint32_t epoch_ = 0;
  Clock next_ = 0;  // The clock of the window's first step.
  ViewId view_;
  uint64_t bad_rows_ = 0;
  std::shared_ptr<ItemPool> items_;  // Made once; null: no negative examples are made.
};

}  // namespace hdps
