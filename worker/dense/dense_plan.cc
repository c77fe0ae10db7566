// Sorts tensors by the settings of their layers, and fills buckets with them.
#include "worker/dense/dense_plan.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "common/base/hash.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"

namespace hdps {
namespace {

DenseBucket Joined(const std::vector<DenseTensor>& tensors, std::vector<uint32_t> members) {
  DenseBucket bucket;
  bucket.runs = RunsOf(tensors, members);
  for (const FloatRun& run : bucket.runs) bucket.floats += run.size;
  bucket.tensors = std::move(members);
  return bucket;
}

}  // namespace

int DensePlan::votes_bucket() const {
  for (size_t b = buckets.size(); b-- > 0;) {
    if (!buckets[b].scattered && buckets[b].shared_by == 0) return static_cast<int>(b);
  }
  return -1;
}

uint64_t DensePlan::Fingerprint() const {
  uint64_t all = 0;
  const auto add = [&all](uint64_t number) { all = CombineKeys(all, number); };
  for (const DenseBucket& bucket : buckets) {
    add(bucket.scattered ? 1 : 0);
    for (const uint32_t tensor : bucket.tensors) add(tensor);
  }
  for (const std::vector<uint32_t>& gather : gathers) {
    add(gather.size());
    for (const uint32_t tensor : gather) add(tensor);
  }
  return all;
}

DensePlan PlanDense(const Job& job, const std::vector<DenseTensor>& tensors,
                    const DenseShards& shards, std::span<const uint32_t> shared_by) {
  const CommFusionSpec& fusion = job.parallel.comm_fusion;
  const auto grouped = [&](const std::vector<uint32_t>& ready, const FusionSpec& by) {
    std::vector<FusedTensor> fused;
    for (const uint32_t t : ready) {
      const LayerSpec& layer = job.model.layers[tensors[t].layer];
      fused.push_back({RunOf(tensors[t]).size * sizeof(float), layer.fusion});
    }
    std::vector<std::vector<uint32_t>> groups = BucketsOf(fused, fusion.openstate, by);
    for (std::vector<uint32_t>& group : groups) {
      for (uint32_t& member : group) member = ready[member];
    }
    return groups;
  };
  // Tensors in the order in which their gradients are ready; whole ones by the number of workers
  // that hold them, and by whether the host updates them.
  std::map<std::pair<uint32_t, bool>, std::vector<uint32_t>> whole;
  std::vector<uint32_t> split;
  const std::vector<bool> at_servers = HeldByServers(job, tensors);
  for (auto t = static_cast<uint32_t>(tensors.size()); t-- > 0;) {
    const uint32_t workers = shared_by.empty() ? 0 : shared_by[t];
    const LayerSpec& layer = job.model.layers[tensors[t].layer];
    if (layer.layerwise_parallel || workers == 1 || at_servers[t]) continue;
    const bool on_host = !WhyDenseOnHost(job, layer).empty();
    (shards.split(t) ? split : whole[{workers, on_host}]).push_back(t);
  }
  DensePlan plan;
  for (const auto& [home, ready] : whole) {
    for (auto& members : grouped(ready, fusion.allreduce)) {
      plan.buckets.push_back(Joined(tensors, std::move(members)));
      plan.buckets.back().shared_by = home.first;
    }
  }
  for (auto& members : grouped(split, fusion.reducescatter)) {
    plan.buckets.push_back(Joined(tensors, std::move(members)));
    plan.buckets.back().scattered = true;
  }
  std::ranges::sort(plan.buckets, std::greater(),
                    [](const DenseBucket& bucket) { return bucket.tensors.back(); });
  std::ranges::reverse(split);  // Weights are read in the order of the layers.
  plan.gathers = grouped(split, fusion.allgather);
  plan.bucket_of.assign(tensors.size(), -1);
  for (size_t b = 0; b < plan.buckets.size(); ++b) {
    for (const uint32_t t : plan.buckets[b].tensors) plan.bucket_of[t] = static_cast<int32_t>(b);
  }
  return plan;
}

}  // namespace hdps
