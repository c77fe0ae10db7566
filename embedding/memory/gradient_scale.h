// What gradients are multiplied with when several workers' become one update: the meaning of
// gradients_mean and cross_batch. Servers use it for rows and, under allreduce, workers for their
// dense tensors, so that both come to the same bits.
#pragma once

#include <cstdint>

#include "common/job/spec/parallel_spec.h"

namespace hdps {

// Of one worker's gradients (sums over its `examples` > 0) before they are added to the others'.
inline float PartScale(const ParallelSpec& parallel, uint64_t examples) {
  return parallel.cross_batch ? static_cast<float>(1.0 / static_cast<double>(examples)) : 1.0f;
}

// Of the sum over `workers` (all of the step, also those without a row) with `examples` > 0 in all.
// gradients_mean:  the mean over all examples; with cross_batch, the mean of the workers' means.
// otherwise:       that times the number of workers.
inline float SumScale(const ParallelSpec& parallel, uint64_t workers, uint64_t examples) {
  const double n = static_cast<double>(workers);
  if (parallel.cross_batch) return parallel.gradients_mean ? static_cast<float>(1.0 / n) : 1.0f;
  const double all = static_cast<double>(examples);
  return static_cast<float>(parallel.gradients_mean ? 1.0 / all : n / all);
}

// Of what one worker gives to running averages, before the two above: an average moves to the mean
// of what `workers` give, also where gradients are added up instead.
inline float AverageScale(const ParallelSpec& parallel, uint64_t workers) {
  return parallel.gradients_mean ? 1.0f : static_cast<float>(1.0 / static_cast<double>(workers));
}

}  // namespace hdps
