// Plans the reduction of dense gradients under allreduce: which tensors travel together, and which
// are reduced to a single worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/dense/buckets.h"
#include "worker/dense/dense_runs.h"
#include "worker/dense/dense_shards.h"
#include "worker/model/model.h"

namespace hdps {

struct Job;

// Tensors whose gradients are moved by one collective.
struct DenseBucket {
  std::vector<uint32_t> tensors;  // In the order in which their gradients are ready.
  std::vector<FloatRun> runs;     // Ranges of their floats, ascending; adjacent ones are joined.
  size_t floats = 0;
  uint32_t shared_by = 0;  // In a cut model, the number of workers that hold these tensors; 0: all.
  bool scattered = false;  // Each rank receives only the sum of its own pieces.
};

// Invariant: every tensor is in one bucket, belongs to the worker alone, or is kept by servers. The
// tensors of a bucket are updated all on a worker's device, if it has one, or all by the host
// (WhyDenseOnHost). Backward computes
// gradients in descending order of the tensors, so buckets stand in the order in which they fill.
struct DensePlan {
  std::vector<DenseBucket> buckets;
  // [tensors]; -1: the tensor belongs to this worker alone (layerwise_parallel, or a cut model in
  // which no other worker holds it), or servers keep it.
  std::vector<int32_t> bucket_of;
  // Split tensors, grouped by the collective that returns their weights.
  std::vector<std::vector<uint32_t>> gathers;

  // Returns the bucket with which a few extra numbers travel; -1: no bucket can take them.
  int votes_bucket() const;
  // Equal on two ranks that make the same calls.
  uint64_t Fingerprint() const;
};

// Plans the buckets. `shared_by` [tensors]: in a cut model, the number of workers that hold each
// tensor; empty: all hold each. The tensors of a bucket are held by the same workers.
DensePlan PlanDense(const Job& job, const std::vector<DenseTensor>& tensors,
                    const DenseShards& shards, std::span<const uint32_t> shared_by);

}  // namespace hdps
