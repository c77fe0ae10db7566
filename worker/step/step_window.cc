// Takes steps from the reader and gives them back after use.
#include "worker/step/step_window.h"

#include <utility>

#include "common/job/job_spec.h"

namespace hdps {

StepWindow::StepWindow(StepPipeline& steps, const Job& job, NodeChannel& channel,
                       MonotonicClock& clock)
    : source_(steps), job_(job), channel_(channel), clock_(clock) {}

Status StepWindow::Fill(size_t count, size_t needed) {
  while (!at_end_ && steps_.size() < count) {
    const bool wait = steps_.size() < needed;
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<PreparedStep> step,
                          wait ? source_.Next() : source_.TryNext());
    if (step == nullptr) {
      at_end_ = wait;  // Without a wait, the end looks the same as a reader that is late.
      break;
    }
    WindowStep& added = steps_.emplace_back();
    added.prepared = std::move(step);
    if (spare_.empty()) {
      added.rows = std::make_unique<RowGather>(job_, channel_, clock_);
    } else {
      added.rows = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  return Status();
}

void StepWindow::Pop() {
  WindowStep& done = steps_.front();
  done.rows->CancelRequests();
  // Prefetched rows stay in replies until their step's turn, so two sets of row memory are enough.
  for (WindowStep& step : steps_) {
    if (&step != &done) step.rows->TakeMemoryOf(*done.rows);
  }
  spare_.push_back(std::move(done.rows));
  source_.Recycle(std::move(done.prepared));
  steps_.pop_front();
}

void StepWindow::CancelRequests() {
  for (WindowStep& step : steps_) step.rows->CancelRequests();
}

}  // namespace hdps
