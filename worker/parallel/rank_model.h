// The part of a job's model that one worker of a strategy trains.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/parallel/strategy.h"
#include "common/platform/executor.h"
#include "worker/collective/collective.h"
#include "worker/model/model.h"
#include "worker/parallel/rank_graph.h"
#include "worker/parallel/tensor_slices.h"

namespace hdps {

enum class RankUse : uint8_t { kTrain, kPredict };

// Invariant: all ranks make the same calls with a group in the same order; the group has all ranks.
class RankModel {
 public:
  // Makes the rank's model. kInvalidArgument if the model cannot be cut so, lies on a GPU, or is
  // updated by a rule that needs whole tensors or rows.
  static Result<std::unique_ptr<RankModel>> New(const Job& job, const Strategy& strategy,
                                                uint32_t rank, Executor& executor,
                                                RankUse use = RankUse::kTrain);

  const RankGraph& graph() const { return graph_; }
  const Job& job() const { return graph_.job; }  // Has the rank's layers.
  Model& model() { return *model_; }

  // Returns the number of ranks that hold each tensor [tensors]; 0: all.
  std::vector<uint32_t> SharedBy() const;
  // Exchanges the ranks' numbers of examples in each lane of the step; `examples` are this rank's.
  Status BeginStep(Collective& group, std::span<const uint32_t> examples);
  // Returns the layers' numbers of rows in a lane of the step, [layers].
  std::span<const size_t> RowsOfLayers(size_t lane) const { return layer_rows_[lane]; }

  // Returns the rank's part of the job's dense rows; see TensorSlices.
  std::vector<float> CutRows(uint32_t row_floats, std::span<const float> whole) const {
    return slices_.Cut(row_floats, whole);
  }
  // Joins the rows of all ranks at rank 0; returns nothing on other ranks.
  Result<std::vector<float>> GatherRows(Collective& group, uint32_t row_floats,
                                        std::span<const float> own);

 private:
  RankModel(const Job& job, const Strategy& strategy, RankGraph graph, std::unique_ptr<Model> model,
            const std::vector<DenseTensor>& whole);

  const Job whole_job_;
  const Strategy strategy_;
  const RankGraph graph_;
  const std::unique_ptr<Model> model_;
  const std::vector<DenseTensor> whole_;
  const TensorSlices slices_;
  std::vector<std::vector<size_t>> layer_rows_;  // [lanes][layers]
};

}  // namespace hdps
