// Update rules of one weight, the same source for host and device: see embedding/memory/optimizer.h
// for whole rows.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "common/job/table_spec.h"

#ifdef __CUDACC__
#define HDPS_HOST_DEVICE __host__ __device__
#else
#define HDPS_HOST_DEVICE
#endif

namespace hdps {

// Floats of state behind `size` weights: arrays of `size` in the order the rules below name them,
// then one count of updates under Adam and AdamW. Row-wise Adagrad and LAMB reduce over whole rows
// and are not among these rules.
inline size_t UpdateStateFloats(const OptimizerSpec& spec, size_t size) {
  switch (spec.kind) {
    case OptimizerKind::kSgd:
      return 0;
    case OptimizerKind::kMomentum:
    case OptimizerKind::kAdagrad:
      return size;
    case OptimizerKind::kLazyAdam:
    case OptimizerKind::kFtrl:
      return 2 * size;
    default:
      return 2 * size + 1;
  }
}

// 1 / (1 - beta^t) for both moments of Adam.
struct AdamCorrection {
  float first = 1, second = 1;
};

HDPS_HOST_DEVICE inline double PowerOf(double base, int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

HDPS_HOST_DEVICE inline AdamCorrection CorrectionAfter(const OptimizerSpec& spec, int64_t updates) {
  return {static_cast<float>(1.0 / (1.0 - PowerOf(spec.beta1, updates))),
          static_cast<float>(1.0 / (1.0 - PowerOf(spec.beta2, updates)))};
}

// The sum of ((values[i] * part_scale) * scale)^2 in an order that vectors of any width can keep:
// element i goes to partial sum i % 16, then halves are added to halves. For row-wise Adagrad.
HDPS_HOST_DEVICE inline float SumOfSquaresInLanes(const float* values, float part_scale,
                                                  float scale, size_t count) {
  constexpr size_t kLanes = 16;
  float lanes[kLanes] = {};
  for (size_t i = 0; i < count; ++i) {
    const float g = (values[i] * part_scale) * scale;
    lanes[i % kLanes] += g * g;
  }
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

// Up to here a float counts exactly; the corrections are long 1 by then.
inline constexpr float kUpdatesCountedMax = 16777216.0f;

// One more update of a row or tensor that counts its own in a float; the corrections after it.
HDPS_HOST_DEVICE inline AdamCorrection CountUpdate(const OptimizerSpec& spec, float* count) {
  const float grown = *count + 1.0f;
  *count = grown < kUpdatesCountedMax ? grown : kUpdatesCountedMax;
  return CorrectionAfter(spec, static_cast<int64_t>(*count));
}

// Row-wise Adagrad of a whole row: adds the mean of its gradient's squares to `*h` and gives the
// rate that every weight then moves by, w -= rate * g. `squares` is added up in order of weight.
HDPS_HOST_DEVICE inline float RowwiseAdagradRate(const OptimizerSpec& spec, size_t dim,
                                                 float squares, float* h) {
  *h += squares / static_cast<float>(dim);
  return spec.learning_rate / (sqrtf(*h) + spec.epsilon);
}

// One weight and what the rule keeps for it; s0 and s1 are momentum's v, Adagrad's h, Adam's m and
// v, or FTRL's z and n.
HDPS_HOST_DEVICE inline void UpdateWeight(const OptimizerSpec& spec, AdamCorrection correction,
                                          float g, float* w, float* s0, float* s1) {
  switch (spec.kind) {
    case OptimizerKind::kSgd:
      *w -= spec.learning_rate * g;
      return;
    case OptimizerKind::kMomentum:
      *s0 = spec.momentum * *s0 + g;
      *w -= spec.learning_rate * *s0;
      return;
    case OptimizerKind::kAdagrad:
      *s0 += g * g;
      *w -= spec.learning_rate * g / (sqrtf(*s0) + spec.epsilon);
      return;
    case OptimizerKind::kFtrl: {
      const float grown = *s1 + g * g;
      const float root = sqrtf(grown);
      *s0 += g - (root - sqrtf(*s1)) / spec.learning_rate * *w;
      *s1 = grown;
      const float excess = fmaxf(fabsf(*s0) - spec.l1, 0.0f);
      const float magnitude = excess / (root / spec.learning_rate + spec.l2);
      *w = excess == 0.0f ? 0.0f : *s0 > 0 ? -magnitude : magnitude;
      return;
    }
    default: {  // Adam, lazy Adam, AdamW.
      *s0 = spec.beta1 * *s0 + (1 - spec.beta1) * g;
      *s1 = spec.beta2 * *s1 + (1 - spec.beta2) * (g * g);
      const float direction =
          *s0 * correction.first / (sqrtf(*s1 * correction.second) + spec.epsilon);
      const float decay = spec.kind == OptimizerKind::kAdamW ? spec.weight_decay : 0.0f;
      *w -= spec.learning_rate * (direction + decay * *w);
      return;
    }
  }
}

}  // namespace hdps
