// Computes the values of one layer in the middle of a model, such as the vectors of items.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "common/platform/executor.h"
#include "worker/model/graph_lane.h"

namespace hdps {

// Runs the graph forward in 32 bits on the CPU, wherever the job computes it.
//
// Invariant: values are a function of the batch, the rows and the dense array, as Model::Predict's
// scores are.
class LayerValues {
 public:
  // `layer` is a layer's name. kInvalidArgument if the job has no such layer, or if the layers do
  // not fit together. `dense` is the model's flat array. Requires: `executor` outlives the result.
  static Result<std::unique_ptr<LayerValues>> New(const Job& job, const std::string& layer,
                                                  std::vector<float> dense, Executor& executor);

  uint32_t width() const { return lane_->graph().places[place_].width; }
  // Returns the layer's values, [n, width]. `tables` as for Model::Predict; labels, which must be
  // as many as the job has, are not used.
  Result<std::vector<float>> Compute(const Batch& batch, std::span<const TableInput> tables);

 private:
  LayerValues(const Job& job, std::vector<float> dense, Executor& executor);

  const Job job_;
  const std::vector<float> dense_;
  const std::unique_ptr<DenseOps> ops_;
  std::unique_ptr<GraphLane> lane_;
  uint32_t place_ = 0;
};

}  // namespace hdps
