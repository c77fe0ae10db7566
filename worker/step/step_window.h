// Keeps the current step and those after it that are known, with the requests for their rows.
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
  uint64_t list = 0;  // Number of its key list; set before the first request for its rows.
};

// Invariant: at(0), at(1), ... are consecutive steps of one epoch; there are no more of them than
// Fill() was asked for. The memory of finished steps is used again.
//
// Belongs to the trainer's thread.
class StepWindow {
 public:
  // Requires: all arguments outlive it.
  StepWindow(StepPipeline& steps, const Job& job, NodeChannel& channel, MonotonicClock& clock);

  // Takes steps from the reader until there are `count`, but waits only while there are fewer than
  // `needed`.
  Status Fill(size_t count, size_t needed);
  size_t size() const { return steps_.size(); }
  // Is true if there are no steps behind those of the window.
  bool at_end() const { return at_end_ || source_.at_end(); }
  WindowStep& at(size_t i) { return steps_[i]; }
  // Removes the first step, which is finished.
  void Pop();
  // Splits a step again with the current hot keys. Requires: its rows have not been requested.
  void Split(size_t i) { source_.Split(steps_[i].prepared.get()); }
  // Drops the rows and row requests of all steps; the steps stay.
  void CancelRequests();

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
