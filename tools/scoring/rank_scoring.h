// Scores a checkpoint by several workers, in one process or in one each, with the model cut by a
// strategy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "common/parallel/strategy.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "tools/scoring/checkpoint_model.h"
#include "worker/collective/collective.h"
#include "worker/parallel/rank_model.h"
#include "worker/step/lane_exchange.h"

namespace hdps {

// A worker of this process, with two groups of all workers: one for the batch, one for exchanges
// within the layers.
struct ScoringRank {
  uint32_t rank = 0;
  std::unique_ptr<Collective> group, lane_group;
};

// Scores batches by one thread per worker of this process.
//
// Invariant: worker r scores the r-th part of a batch's rows, and computes the part of the layers
// that the strategy gives it. Every process has the scores of all.
class RankScoring {
 public:
  // `here`: all workers, or one. Requires: `loaded`, `executor` and `clock` outlive the result.
  static Result<std::unique_ptr<RankScoring>> New(const Job& job, const Strategy& strategy,
                                                  std::vector<ScoringRank> here,
                                                  CheckpointModel& loaded, Executor& executor,
                                                  MonotonicClock& clock);

  // Scores like Model::Predict, in the order of the batch's rows. All processes score the same
  // batches.
  Result<double> Score(const Batch& batch, std::vector<float>* scores);
  // Lists each worker of this process with the bytes of its dense tensors, and each tensor that is
  // cut.
  std::string Describe() const;

 private:
  struct Rank {
    ScoringRank of;
    std::unique_ptr<RankModel> model;
    std::unique_ptr<LaneExchange> exchange;
    std::unique_ptr<KeyFinder> keys;
    std::vector<float> scores;
    double loss_sum = 0;
    Status status;
  };

  RankScoring(const Job& job, uint32_t workers, CheckpointModel& loaded)
      : job_(job), workers_(workers), loaded_(loaded) {}
  Status ScorePart(Rank& rank, const Batch& batch);
  // Replaces the scores and the sum of losses of this process by those of all workers.
  Status Gather(std::vector<float>* scores, double* loss_sum);

  const Job job_;
  const uint32_t workers_;
  CheckpointModel& loaded_;
  std::vector<DenseTensor> whole_;
  std::vector<Rank> ranks_;
};

// Returns all workers, as threads of this process.
std::vector<ScoringRank> AllRanksHere(uint32_t workers);

}  // namespace hdps
