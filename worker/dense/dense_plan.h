// What becomes of each dense tensor's gradient under allreduce: which of them travel together, and
// which go to one worker alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/dense/buckets.h"
#include "worker/dense/dense_shards.h"
#include "worker/model/model.h"

namespace hdps {

struct Job;

// A run of floats in a model's flat array.
struct FloatRun {
  size_t begin = 0, size = 0;
};

// The floats of a tensor in the flat array, with what fills up its last chunk.
FloatRun RunOf(const DenseTensor& tensor);

// Tensors whose gradients one collective moves.
struct DenseBucket {
  std::vector<uint32_t> tensors;  // In the order in which their gradients are ready.
  std::vector<FloatRun> runs;     // Their floats, neighbours joined, ascending.
  size_t floats = 0;
  uint32_t shared_by = 0;  // Of a cut model: so many workers have them; 0: all.
  bool scattered = false;  // Every rank gets the sum of its pieces alone.
};

// Invariant: every tensor is in one bucket, or is the worker's own. Backward makes the gradients of
// tensors in the reverse order of their numbers, so buckets stand in the order in which they fill.
struct DensePlan {
  std::vector<DenseBucket> buckets;
  std::vector<int32_t> bucket_of;  // [tensors]; -1: the worker's own (layerwise_parallel, or cut
                                   // so that nobody else has it).
  // Of the tensors that are split: those whose weights come back together.
  std::vector<std::vector<uint32_t>> gathers;

  // The bucket beside which a few numbers travel; -1: none can take them.
  int words_bucket() const;
  // Equal for two ranks that make the same calls.
  uint64_t Fingerprint() const;
};

// `shared_by` [tensors]: of a cut model, how many workers have the tensor; empty: all have each. A
// bucket has tensors of the same workers.
DensePlan PlanDense(const Job& job, const std::vector<DenseTensor>& tensors,
                    const DenseShards& shards, std::span<const uint32_t> shared_by);

}  // namespace hdps
