// Factors by which gradients are multiplied when those of several workers become one update: the
// meaning of gradients_mean and cross_batch. Servers use them for rows and workers, under
// allreduce, for dense tensors, so that both get the same bits.
#pragma once

#include <cstdint>

#include "common/job/spec/parallel_spec.h"

namespace hdps {

// Returns the factor for one worker's gradients (sums over its `examples` > 0) before they are
// added to the others'.
inline float PartScale(const ParallelSpec& parallel, uint64_t examples) {
  return parallel.cross_batch ? static_cast<float>(1.0 / static_cast<double>(examples)) : 1.0f;
}

// Returns the factor for the sum over `workers` (all of the step, also those without a row) with
// `examples` > 0 in all. With gradients_mean the result is the mean over all examples or, with
// cross_batch, the mean of the workers' means; without it, that times the number of workers.
inline float SumScale(const ParallelSpec& parallel, uint64_t workers, uint64_t examples) {
  const double n = static_cast<double>(workers);
  if (parallel.cross_batch) return parallel.gradients_mean ? static_cast<float>(1.0 / n) : 1.0f;
  const double all = static_cast<double>(examples);
  return static_cast<float>(parallel.gradients_mean ? 1.0 / all : n / all);
}

// Returns the factor for one worker's values of running averages, applied before the two above: an
// average moves to the mean over `workers`, also where gradients are added up.
inline float AverageScale(const ParallelSpec& parallel, uint64_t workers) {
  return parallel.gradients_mean ? 1.0f : static_cast<float>(1.0 / static_cast<double>(workers));
}

}  // namespace hdps
