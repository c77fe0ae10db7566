// Appends scores, and drops the oldest when there are twice as many as needed.
#include "worker/step/progressive_scores.h"

#include <algorithm>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/command_messages.h"

namespace hdps {
namespace {

// `an_example`: the values that an example has, if there are any.
template <typename Value>
void KeepLast(size_t examples, size_t an_example, std::vector<Value>* values) {
  const size_t kept = std::min(values->size(), examples * an_example);
  values->erase(values->begin(), values->end() - static_cast<ptrdiff_t>(kept));
}

template <typename Value>
Buffer Last(size_t examples, size_t an_example, const std::vector<Value>& values) {
  const size_t kept = std::min(values.size(), examples * an_example);
  return Buffer::CopyOf(std::span<const Value>(values).last(kept));
}

}  // namespace

ProgressiveScores::ProgressiveScores(const Job& job)
    : job_(job), window_(job.train.progressive.window), tasks_(TasksOf(job.model).size()) {}

void ProgressiveScores::Add(const Batch& batch, std::span<const float> logits) {
  kept_.Add(job_, batch, logits);
  if (examples() < 2 * window_) return;
  KeepLast(window_, tasks_, &kept_.scores);
  KeepLast(window_, tasks_, &kept_.labels);
  KeepLast(window_, 1, &kept_.weights);
  KeepLast(window_, 1, &kept_.groups);
}

void ProgressiveScores::FillIn(uint32_t rank, uint32_t workers, CommandDone* done) const {
  const size_t part = (window_ + workers - 1 - rank) / workers;
  done->scores = Last(part, tasks_, kept_.scores);
  done->labels = Last(part, tasks_, kept_.labels);
  done->weights = Last(part, 1, kept_.weights);
  done->groups = Last(part, 1, kept_.groups);
}

}  // namespace hdps
