// Builds a lane of its own and reads a place of it.
#include "tools/scoring/towers/layer_values.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"

namespace hdps {
namespace {

// Returns the job with all of its layers on the CPU, in 32 bits.
Job OnCpu(Job job) {
  job.model.device = "cpu";
  job.model.precision = Precision::kFp32;
  for (LayerSpec& layer : job.model.layers) layer.device = "auto";
  return job;
}

}  // namespace

LayerValues::LayerValues(const Job& job, std::vector<float> dense, Executor& executor)
    : job_(OnCpu(job)), dense_(std::move(dense)), ops_(NewCpuOps(executor)) {}

Result<std::unique_ptr<LayerValues>> LayerValues::New(const Job& job, const std::string& layer,
                                                      std::vector<float> dense,
                                                      Executor& executor) {
  const std::vector<LayerSpec>& layers = job.model.layers;
  const auto at = std::ranges::find(layers, layer, &LayerSpec::name);
  if (at == layers.end()) {
    return Status(Code::kInvalidArgument, "model.layers: there is no layer \"" + layer + "\"");
  }
  std::unique_ptr<LayerValues> values(new LayerValues(job, std::move(dense), executor));
  values->place_ = static_cast<uint32_t>(at - layers.begin());
  HDPS_ASSIGN_OR_RETURN(Graph graph, BuildGraph(values->job_, *values->ops_));
  values->lane_ = std::make_unique<GraphLane>(values->job_, *values->ops_, std::move(graph));
  const Place& place = values->lane_->graph().places[values->place_];
  CHECK(place.used && !place.fused) << layer << " is computed within another layer";
  return values;
}

Result<std::vector<float>> LayerValues::Compute(const Batch& batch,
                                                std::span<const TableInput> tables) {
  lane_->Begin({&batch, tables, nullptr, {}, {}}, {.dense = dense_.data()}, 0);
  for (size_t segment = 0; segment < lane_->segments(); ++segment) {
    HDPS_RETURN_IF_ERROR(lane_->ForwardSegment(segment));
  }
  const ConstMatrix value = lane_->graph().places[place_].value;
  std::vector<float> values;
  values.reserve(value.rows * value.cols);
  for (size_t r = 0; r < value.rows; ++r) {
    values.insert(values.end(), value.Row(r), value.Row(r) + value.cols);
  }
  return values;
}

}  // namespace hdps
