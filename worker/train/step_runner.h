// Carries out one step: pull, compute, reduce, push, advance.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/executor.h"
#include "common/job.h"
#include "common/monotonic_clock.h"
#include "common/status.h"
#include "worker/exchange/collective.h"
#include "worker/model/model.h"
#include "worker/train/dense_state.h"
#include "worker/train/node_channel.h"
#include "worker/train/stage.h"
#include "worker/train/step_pipeline.h"

namespace hdps {

// Where the dense gradients go under allreduce: summed over the ranks, applied by each.
struct DenseGroup {
  Collective* collective = nullptr;  // Null: dense gradients go to the servers.
  DenseState* state = nullptr;
};

struct StepOutcome {
  uint64_t examples = 0;  // Of this worker.
  double loss_sum = 0;
  bool pause = false;  // Stop after this step; under allreduce all workers agree on it.
};

// Belongs to the trainer's thread.
//
// Invariant: a clock is announced to the servers only after every push of the steps before it has
// been acknowledged, and the rows of a step are asked for only after the push of the step before.
class StepRunner {
 public:
  StepRunner(const Job& job, Model& model, NodeChannel& channel, MonotonicClock& clock,
             Executor& executor);

  void set_group(const DenseGroup& group) { group_ = group; }

  // Step `clock` of this worker. `pause_wanted`: this worker was told to pause. kCorruption when
  // the loss is not a number: nothing of this step has been pushed then.
  Result<StepOutcome> Run(const PreparedStep& step, Clock clock, bool pause_wanted);
  // Waits until the servers know the clock of the last step.
  Status Settle();

  // The rows of the step's keys: rows[table] is [keys * dim], empty for the dense table.
  struct PullOptions {
    Clock clock = 0;
    PullMode mode = PullMode::kTrain;
    std::optional<std::span<float>> dense;  // Where the dense weights go, when the split has them.
  };
  Status PullRows(const PreparedStep& step, const PullOptions& options,
                  std::vector<std::vector<float>>* rows);
  StepTimes& times() { return times_; }

 private:
  Status Pull(const PreparedStep& step, Clock clock);
  Status Compute(const PreparedStep& step, StepOutcome* outcome);
  void ComputePart(const PreparedStep& step, size_t part, StepOutcome* outcome);
  Status ReduceDense(const PreparedStep& step, Clock clock, StepOutcome* outcome);
  Status Push(const PreparedStep& step, Clock clock);
  Status Advance(Clock clock);
  bool dense_at_servers() const { return group_.collective == nullptr && !dense_.empty(); }
  // The gradients of the step for the tables of its split.
  std::vector<std::span<const float>> GradientsOfSplit(const PreparedStep& step) const;

  const Job& job_;
  Model& model_;
  NodeChannel& channel_;
  MonotonicClock& clock_;
  Executor& executor_;
  const int dense_table_;  // -1: the job has none.
  DenseGroup group_;

  uint64_t next_sequence_ = 0;
  std::optional<Ticket> advance_;  // On its way.
  StepTimes times_;

  // Kept for their memory. Sizes are those of the step at hand.
  std::vector<std::vector<float>> rows_;           // [tables][keys * dim]
  std::vector<std::vector<float>> row_gradients_;  // [tables][keys * dim], of the whole step
  std::vector<std::vector<float>> scratch_rows_;   // [tables], rows of one part
  StepResult result_;
  std::vector<float> dense_;            // [dense floats]
  std::vector<float> dense_gradients_;  // [dense floats + what the group agrees on]
  std::vector<float> part_gradients_;   // [dense floats]
};

}  // namespace hdps
