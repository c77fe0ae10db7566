// Keeps a worker's newest scores from before their examples were learned (train.progressive).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "worker/data/batch.h"
#include "worker/step/evaluation.h"

namespace hdps {

struct CommandDone;
struct Job;

// Invariant: holds each example of the steps since the last Forget() once, or the newest `window`
// and at most as many before them.
//
// Belongs to the trainer's thread.
class ProgressiveScores {
 public:
  // Requires: `job` outlives it.
  explicit ProgressiveScores(const Job& job);

  bool used() const { return window_ > 0; }  // Otherwise nothing may be added.
  // Adds the examples of a part of a step. logits [examples, tasks].
  void Add(const Batch& batch, std::span<const float> logits);
  void Forget() { kept_.Clear(); }
  // Fills in worker `rank`'s part of the window, its newest examples; the parts of all `workers`
  // have `window` examples.
  void FillIn(uint32_t rank, uint32_t workers, CommandDone* done) const;

 private:
  size_t examples() const { return kept_.labels.size() / tasks_; }

  const Job& job_;
  const size_t window_, tasks_;
  ExampleScores kept_;
};

}  // namespace hdps
