// Tensors by the settings of their layers, then into buckets.
#include "worker/step/dense_plan.h"

#include <algorithm>
#include <utility>

namespace hdps {
namespace {

DenseBucket Joined(const std::vector<DenseTensor>& tensors, std::vector<uint32_t> members) {
  DenseBucket bucket;
  for (const uint32_t t : members) bucket.runs.push_back(RunOf(tensors[t]));
  std::ranges::sort(bucket.runs, {}, &FloatRun::begin);
  std::vector<FloatRun> joined;
  for (const FloatRun& run : bucket.runs) {
    bucket.floats += run.size;
    if (!joined.empty() && joined.back().begin + joined.back().size == run.begin) {
      joined.back().size += run.size;
    } else {
      joined.push_back(run);
    }
  }
  bucket.runs = std::move(joined);
  bucket.tensors = std::move(members);
  return bucket;
}

}  // namespace

FloatRun RunOf(const DenseTensor& tensor) {
  return {tensor.first_chunk * kDenseChunkFloats, tensor.num_chunks * kDenseChunkFloats};
}

DensePlan PlanDense(const Job& job, const std::vector<DenseTensor>& tensors) {
  DensePlan plan;
  plan.bucket_of.assign(tensors.size(), -1);
  std::vector<uint32_t> ready;  // Tensors in the order in which their gradients are.
  std::vector<FusedTensor> fused;
  for (auto t = static_cast<uint32_t>(tensors.size()); t-- > 0;) {
    const LayerSpec& layer = job.model.layers[tensors[t].layer];
    if (layer.layerwise_parallel) continue;
    ready.push_back(t);
    fused.push_back({RunOf(tensors[t]).size * sizeof(float), layer.fusion});
  }
  const CommFusionSpec& fusion = job.parallel.comm_fusion;
  for (const Bucket& bucket : BucketsOf(fused, fusion.openstate, fusion.allreduce)) {
    std::vector<uint32_t> members;
    for (const uint32_t position : bucket) {
      members.push_back(ready[position]);
      plan.bucket_of[ready[position]] = static_cast<int32_t>(plan.buckets.size());
    }
    plan.buckets.push_back(Joined(tensors, std::move(members)));
  }
  return plan;
}

}  // namespace hdps
