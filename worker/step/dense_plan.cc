// Tensors by the settings of their layers, then into buckets.
#include "worker/step/dense_plan.h"

#include <algorithm>
#include <functional>
#include <map>
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

DensePlan PlanDense(const Job& job, const std::vector<DenseTensor>& tensors,
                    std::span<const uint32_t> shared_by) {
  DensePlan plan;
  plan.bucket_of.assign(tensors.size(), -1);
  // By how many have them, the tensors in the order in which their gradients are ready.
  std::map<uint32_t, std::vector<uint32_t>> ready;
  for (auto t = static_cast<uint32_t>(tensors.size()); t-- > 0;) {
    const uint32_t workers = shared_by.empty() ? 0 : shared_by[t];
    if (job.model.layers[tensors[t].layer].layerwise_parallel || workers == 1) continue;
    ready[workers].push_back(t);
  }
  const CommFusionSpec& fusion = job.parallel.comm_fusion;
  for (const auto& [workers, of_workers] : ready) {
    std::vector<FusedTensor> fused;
    for (const uint32_t t : of_workers) {
      fused.push_back(
          {RunOf(tensors[t]).size * sizeof(float), job.model.layers[tensors[t].layer].fusion});
    }
    for (const Bucket& bucket : BucketsOf(fused, fusion.openstate, fusion.allreduce)) {
      std::vector<uint32_t> members;
      for (const uint32_t position : bucket) members.push_back(of_workers[position]);
      plan.buckets.push_back(Joined(tensors, std::move(members)));
    }
  }
  // In the order in which they fill; that of a bucket is the lowest of its tensors, its last.
  std::ranges::sort(plan.buckets, std::ranges::greater(),
                    [](const DenseBucket& bucket) { return std::ranges::min(bucket.tensors); });
  for (size_t b = 0; b < plan.buckets.size(); ++b) {
    for (const uint32_t t : plan.buckets[b].tensors) plan.bucket_of[t] = static_cast<int32_t>(b);
  }
  return plan;
}

}  // namespace hdps
