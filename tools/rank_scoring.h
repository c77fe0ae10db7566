// Scores a checkpoint by several workers in one process, with the model cut by a strategy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "common/job/job_spec.h"
#include "common/parallel/strategy.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "tools/checkpoint_model.h"
#include "worker/collective/collective.h"
#include "worker/parallel/rank_model.h"
#include "worker/step/lane_exchange.h"

namespace hdps {

// Scores batches by one thread per worker.
//
// Invariant: worker r scores the r-th part of a batch's rows, and computes the part of the layers
// that the strategy gives it.
class RankScoring {
 public:
  // Requires: `loaded`, `executor` and `clock` outlive the result.
  static Result<std::unique_ptr<RankScoring>> New(const Job& job, const Strategy& strategy,
                                                  CheckpointModel& loaded, Executor& executor,
                                                  MonotonicClock& clock);

  // Scores like Model::Predict, in the order of the batch's rows.
  Result<double> Score(const Batch& batch, std::vector<float>* scores);
  // Lists each worker with the bytes of its dense tensors, and each tensor that is cut.
  std::string Describe() const;

 private:
  struct Rank {
    std::unique_ptr<Collective> group;
    std::unique_ptr<Collective> lane_group;
    std::unique_ptr<RankModel> model;
    std::unique_ptr<LaneExchange> exchange;
    std::unique_ptr<KeyFinder> keys;
    std::vector<float> scores;
    double loss_sum = 0;
    Status status;
  };

  RankScoring(const Job& job, CheckpointModel& loaded) : job_(job), loaded_(loaded) {}
  Status ScorePart(uint32_t rank, const Batch& batch);

  const Job job_;
  CheckpointModel& loaded_;
  std::vector<DenseTensor> whole_;
  std::vector<Rank> ranks_;
  Mutex mutex_;  // Lets one rank read rows at a time.
};

}  // namespace hdps
