// Gives the steps of an epoch as one worker reads them, from any step on.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/manifest_parts.h"
#include "worker/cache/hot_split.h"
#include "worker/exchange/node_channel.h"
#include "worker/step/step_pipeline.h"
#include "worker/step/step_window.h"

namespace hdps {

class ItemPool;
class RowCaches;

struct Job;
struct View;

// Position of a step in the data.
struct EpochPosition {
  uint32_t epoch = 0;
  Clock epoch_start = 0;  // The clock at which the epoch began.
  Clock clock = 0;        // Clock of the step.
  // Where the partitions of a topic are there; empty: data.kafka.start tells.
  std::vector<PartitionOffset> offsets = {};
  // These are the offsets behind the steps from `clock` on that were pushed: see
  // TopicReading::step_ends.
  std::vector<std::vector<PartitionOffset>> step_ends = {};
};

// Tells how steps are split, by what this worker trains.
struct EpochSplit {
  bool whole_batch = false;              // The layers of a cut model read the rows of all workers.
  std::span<const Key> dense_keys = {};  // Must outlive the steps; see SplitPlan.
  std::shared_ptr<HotKeyRegistry> hot = nullptr;  // Null: no rows are cached here.
  std::shared_ptr<RowCaches> rows = nullptr;      // Null: no parsed rows are kept.
};

// Invariant: while open, the window's first step is the one at the position of Open() plus the
// number of Pop() calls, for the parts and servers of the view at Open().
//
// Belongs to the trainer's thread.
class EpochSteps {
 public:
  // Requires: all arguments outlive it.
  EpochSteps(const Job& job, FileSystem& files, NodeChannel& channel, MonotonicClock& time,
             Executor& executor)
      : job_(job), files_(files), channel_(channel), time_(time), executor_(executor) {}

  // Returns true if the window's first step is the one at `position`, for the place of this worker
  // in the current view.
  // kInvalidArgument if the position lies before its epoch.
  Result<bool> IsAt(const EpochPosition& position) const;
  // Reads from `position` on; earlier steps are dropped. `part` is the job of the trained part; it
  // must outlive the steps.
  Status Open(const Job& part, const EpochPosition& position, const EpochSplit& split);
  void Close();
  // Goes to the step at `clock` if it is the window's first, or the one behind that. The steps that
  // stay have no rows, and no requests for rows.
  void TakeUp(Clock clock);

  // Requires: open.
  StepWindow& window() { return *window_; }
  // Is true if steps may be long in coming, and the window waits for none: data.follow, or a topic.
  bool follows() const;
  // Removes the first step of the window, which is finished, and counts its bad rows.
  void Pop();
  // Where this worker's partitions of a topic are behind the steps that were removed; empty if that
  // is where data.kafka.start tells.
  const std::vector<PartitionOffset>& offsets() const { return offsets_; }
  uint64_t bad_rows() const { return bad_rows_; }  // Bad rows in the steps removed since Open().

 private:
  // Tells behind which row the reader waits for more, or "" if it does not.
  void Await(const std::string& behind);
  // Lets the reader go on at the position in the job's topic.
  void ReadTopic(const EpochPosition& position, ReaderOptions* options);

  const Job& job_;
  FileSystem& files_;
  NodeChannel& channel_;
  MonotonicClock& time_;
  Executor& executor_;

  std::unique_ptr<StepPipeline> steps_;  // Null if closed.
  std::unique_ptr<StepWindow> window_;   // Window over steps_.
  uint32_t epoch_ = 0;
  Clock next_ = 0;                    // Clock of the window's first step.
  std::shared_ptr<const View> view_;  // Of Open().
  WorkerId rank_;
  uint64_t bad_rows_ = 0;
  std::vector<PartitionOffset> offsets_;
  std::shared_ptr<ItemPool> items_;  // Made once; null: no negative examples are made.
};

}  // namespace hdps
