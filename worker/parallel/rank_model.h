// The part of a job's model that one worker of a strategy trains.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/job/job.h"
#include "common/parallel/strategy.h"
#include "common/platform/executor.h"
#include "worker/exchange/collective.h"
#include "worker/model/model.h"
#include "worker/parallel/rank_graph.h"
#include "worker/parallel/rank_sums.h"
#include "worker/parallel/tensor_slices.h"

namespace hdps {

// Invariant: all ranks make the same calls that exchange something, in the same order.
class RankModel {
 public:
  // kInvalidArgument when the model cannot be cut so, lies on a GPU, or is updated by a rule that
  // needs whole tensors or rows.
  static Result<std::unique_ptr<RankModel>> New(const Job& job, const Strategy& strategy,
                                                uint32_t rank, Executor& executor);

  const RankGraph& graph() const { return graph_; }
  const Job& job() const { return graph_.job; }  // With the rank's layers.
  Model& model() { return *model_; }

  // The group of all ranks, which outlives its use here; again after each change of it.
  Status Join(Collective& group);
  // Tells the other ranks how many examples this one has in each lane of the step, and hears of
  // theirs.
  Status BeginStep(std::span<const uint32_t> examples);
  // Which rows the layers have in a lane of the step, [layers].
  std::span<const size_t> RowsOfLayers(size_t lane) const { return layer_rows_[lane]; }
  // As RankSums::Sum.
  Status Sum(std::span<float> flat, std::span<const ReducedValues> beside) {
    return sums_->Sum(flat, beside);
  }
  uint64_t bytes_sent() const;  // By conversions, so far.

  // The rank's rows of the job's dense rows; see TensorSlices.
  std::vector<float> CutRows(uint32_t row_floats, std::span<const float> whole) const {
    return slices_.Cut(row_floats, whole);
  }
  // The rows of all ranks, put together at rank 0; empty elsewhere.
  Result<std::vector<float>> GatherRows(uint32_t row_floats, std::span<const float> own);

 private:
  RankModel(const Job& job, const Strategy& strategy, RankGraph graph, std::unique_ptr<Model> model,
            const std::vector<DenseTensor>& whole);

  const Job whole_job_;
  const Strategy strategy_;
  const RankGraph graph_;
  const std::unique_ptr<Model> model_;
  const std::vector<DenseTensor> whole_;
  const TensorSlices slices_;
  Collective* group_ = nullptr;
  std::unique_ptr<RankSums> sums_;
  std::vector<std::vector<size_t>> layer_rows_;  // [lanes][layers]
};

}  // namespace hdps
