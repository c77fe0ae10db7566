// The step at hand and those behind it that are known already, each with its rows on their way.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "worker/step/row_gather.h"
#include "worker/step/step_pipeline.h"

namespace hdps {

struct Job;

struct WindowStep {
  std::unique_ptr<PreparedStep> prepared;
  std::unique_ptr<RowGather> rows;
  uint64_t list = 0;  // The number of its key list, from the first request for its rows on.
};

// Invariant: at(0), at(1), ... are neighbouring steps of one epoch, in order; no more than were
// asked for by Fill(). The memory of steps that have left is used again.
//
// Belongs to the trainer's thread.
class StepWindow {
 public:
  // Both must outlive it.
  StepWindow(StepPipeline& steps, const Job& job, NodeChannel& channel, MonotonicClock& clock);

  // Takes from the reader until there are `count` steps, but waits for it only while there are
  // fewer than `needed`.
  Status Fill(size_t count, size_t needed);
  size_t size() const { return steps_.size(); }
  WindowStep& at(size_t i) { return steps_[i]; }
  // The first step is done.
  void Pop();
  // Splits a step again, by the hot keys of now. Requires: its rows are not asked for.
  void Split(size_t i) { source_.Split(steps_[i].prepared.get()); }
  // Whatever was asked for the steps is not wanted; they stay.
  void ForgetRows();

 private:
  StepPipeline& source_;
  const Job& job_;
  NodeChannel& channel_;
  MonotonicClock& clock_;
  bool at_end_ = false;
  std::deque<WindowStep> steps_;
  std::vector<std::unique_ptr<RowGather>> spare_;
};

}  // namespace hdps
