// The update rules over one row, to be compiled for each vector width: what optimizer.h offers row
// by row and row_batches.h batch by batch.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "common/job/table_spec.h"
#include "kernels/vector_width.h"

namespace hdps {

// A row counts its updates in a float, exactly up to here; there the bias correction is long 1.
inline constexpr float kRowUpdatesMax = 16777216.0f;  // 2^24

// base^exponent by squaring, so that it has the same bits on every machine (pow() has not).
inline double PowerBySquaring(double base, int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

// 1 / (1 - beta^t) for both moments of Adam (Kingma & Ba 2015, algorithm 1).
struct BiasCorrection {
  float first = 1, second = 1;
};
inline BiasCorrection CorrectionAt(const OptimizerSpec& spec, int64_t t) {
  return {static_cast<float>(1.0 / (1.0 - PowerBySquaring(spec.beta1, t))),
          static_cast<float>(1.0 / (1.0 - PowerBySquaring(spec.beta2, t)))};
}

// Counts one more update of the row in the last float of its state; the count from 1.
inline int64_t CountUpdate(float* count) {
  *count = std::min(*count + 1.0f, kRowUpdatesMax);
  return static_cast<int64_t>(*count);
}

// The corrections of the counts seen last: rows of one batch have few different ones.
class Corrections {
 public:
  explicit Corrections(const OptimizerSpec& spec) : spec_(spec) {}
  BiasCorrection At(int64_t t) {
    const auto place = static_cast<size_t>(t) % kKept;
    if (counts_[place] != t) {
      counts_[place] = t;
      kept_[place] = CorrectionAt(spec_, t);
    }
    return kept_[place];
  }

 private:
  static constexpr size_t kKept = 64;
  const OptimizerSpec& spec_;
  int64_t counts_[kKept] = {};  // 0: none.
  BiasCorrection kept_[kKept];
};

// Floats of a rule's state behind `dim` weights.
constexpr size_t StateFloatsOf(OptimizerKind kind, size_t dim) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return 0;
    case OptimizerKind::kMomentum:
    case OptimizerKind::kAdagrad:
      return dim;
    case OptimizerKind::kRowwiseAdagrad:
      return 1;
    case OptimizerKind::kLazyAdam:
    case OptimizerKind::kFtrl:
      return 2 * dim;
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
    case OptimizerKind::kLamb:
      return 2 * dim + 1;
  }
  return 0;
}

// Element i of the gradient is (values[i] * part) * sum: one worker's scale, then the sum's.
struct GradientScale {
  float part = 1, sum = 1;
};

// w -= lr g
HDPS_INLINE void UpdateSgd(const OptimizerSpec& spec, size_t dim, const float* __restrict values,
                           GradientScale scale, float* __restrict w) {
  for (size_t i = 0; i < dim; ++i) {
    w[i] -= spec.learning_rate * (values[i] * scale.part * scale.sum);
  }
}

// v = mu v + g;  w -= lr v   (Polyak 1964)
HDPS_INLINE void UpdateMomentum(const OptimizerSpec& spec, size_t dim,
                                const float* __restrict values, GradientScale scale,
                                float* __restrict w, float* __restrict v) {
  for (size_t i = 0; i < dim; ++i) {
    v[i] = spec.momentum * v[i] + values[i] * scale.part * scale.sum;
    w[i] -= spec.learning_rate * v[i];
  }
}

// h += g^2;  w -= lr g / (sqrt(h) + eps)   (Duchi et al. 2011)
HDPS_INLINE void UpdateAdagrad(const OptimizerSpec& spec, size_t dim,
                               const float* __restrict values, GradientScale scale,
                               float* __restrict w, float* __restrict h) {
  for (size_t i = 0; i < dim; ++i) {
    const float g = values[i] * scale.part * scale.sum;
    h[i] += g * g;
    w[i] -= spec.learning_rate * g / (std::sqrt(h[i]) + spec.epsilon);
  }
}

// Sixteen partial sums, element i in sum i % 16, then halves added to halves: an order that every
// vector width can keep.
typedef float SixteenFloats __attribute__((vector_size(64), aligned(4), may_alias));
// By halves added to halves.
HDPS_INLINE float SumOfLanes(const SixteenFloats& lanes) {
  typedef float Eight __attribute__((vector_size(32)));
  typedef float Four __attribute__((vector_size(16)));
  const Eight eight = __builtin_shufflevector(lanes, lanes, 0, 1, 2, 3, 4, 5, 6, 7) +
                      __builtin_shufflevector(lanes, lanes, 8, 9, 10, 11, 12, 13, 14, 15);
  const Four four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) +
                    __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  return (four[0] + four[2]) + (four[1] + four[3]);
}
HDPS_INLINE float SumOfSquares(const float* values, GradientScale scale, size_t dim) {
  constexpr size_t kLanes = 16;
  SixteenFloats sums = {};
  size_t i = 0;
  for (; i + kLanes <= dim; i += kLanes) {
    const SixteenFloats g =
        *reinterpret_cast<const SixteenFloats*>(values + i) * scale.part * scale.sum;
    sums += g * g;
  }
  if (i < dim) {
    float lanes[kLanes];
    *reinterpret_cast<SixteenFloats*>(lanes) = sums;
    for (size_t lane = 0; i < dim; ++i, ++lane) {
      const float g = values[i] * scale.part * scale.sum;
      lanes[lane] += g * g;
    }
    sums = *reinterpret_cast<const SixteenFloats*>(lanes);
  }
  return SumOfLanes(sums);
}

// h += mean(g^2) over the row, one h a row;  w -= lr g / (sqrt(h) + eps)
HDPS_INLINE void UpdateRowwiseAdagrad(const OptimizerSpec& spec, size_t dim,
                                      const float* __restrict values, GradientScale scale,
                                      float* __restrict w, float* __restrict h) {
  *h += SumOfSquares(values, scale, dim) / static_cast<float>(dim);
  const float rate = spec.learning_rate / (std::sqrt(*h) + spec.epsilon);
  for (size_t i = 0; i < dim; ++i) w[i] -= rate * (values[i] * scale.part * scale.sum);
}

// m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
// w -= lr (m^ / (sqrt(v^) + eps) + decay w),  m^ and v^ corrected for their start at zero.
// Kingma & Ba 2015; decay as in Loshchilov & Hutter 2019, algorithm 2, 0 for plain Adam.
HDPS_INLINE void UpdateAdam(const OptimizerSpec& spec, BiasCorrection correction, float decay,
                            size_t dim, const float* __restrict values, GradientScale scale,
                            float* __restrict w, float* __restrict m, float* __restrict v) {
  const float beta1 = spec.beta1, beta2 = spec.beta2;
  for (size_t i = 0; i < dim; ++i) {
    const float g = values[i] * scale.part * scale.sum;
    m[i] = beta1 * m[i] + (1 - beta1) * g;
    v[i] = beta2 * v[i] + (1 - beta2) * (g * g);
    const float direction =
        m[i] * correction.first / (std::sqrt(v[i] * correction.second) + spec.epsilon);
    w[i] -= spec.learning_rate * (direction + decay * w[i]);
  }
}

// s = (sqrt(n + g^2) - sqrt(n)) / lr;  z += g - s w;  n += g^2
// w = 0 where |z| <= l1, else -(z - sign(z) l1) / (sqrt(n) / lr + l2)
// FTRL-Proximal, per coordinate (McMahan et al. 2013, algorithm 1, beta = 0: the initial
// accumulator takes its place).
HDPS_INLINE void UpdateFtrl(const OptimizerSpec& spec, size_t dim, const float* __restrict values,
                            GradientScale scale, float* __restrict w, float* __restrict z,
                            float* __restrict n) {
  for (size_t i = 0; i < dim; ++i) {
    const float g = values[i] * scale.part * scale.sum;
    const float grown = n[i] + g * g;
    const float root = std::sqrt(grown);
    z[i] += g - (root - std::sqrt(n[i])) / spec.learning_rate * w[i];
    n[i] = grown;
    // No branch, so that the loop becomes vectors; w is 0 and not -0 where |z| <= l1.
    const float excess = std::abs(z[i]) - spec.l1;
    const float size = excess / (root / spec.learning_rate + spec.l2);
    const float moved = z[i] > 0 ? -size : size;
    w[i] = excess > 0 ? moved : 0.0f;
  }
}

// One update of one row under a rule that is known when this is compiled; `w` is followed by the
// state. `corrections` and, for lazy Adam, `at_step` are those of the batch.
template <OptimizerKind kRule>
HDPS_INLINE void UpdateRowBy(const OptimizerSpec& spec, BiasCorrection at_step,
                             Corrections& corrections, size_t dim, const float* values,
                             GradientScale scale, float* w, float* state) {
  if constexpr (kRule == OptimizerKind::kSgd) {
    UpdateSgd(spec, dim, values, scale, w);
  } else if constexpr (kRule == OptimizerKind::kMomentum) {
    UpdateMomentum(spec, dim, values, scale, w, state);
  } else if constexpr (kRule == OptimizerKind::kAdagrad) {
    UpdateAdagrad(spec, dim, values, scale, w, state);
  } else if constexpr (kRule == OptimizerKind::kRowwiseAdagrad) {
    UpdateRowwiseAdagrad(spec, dim, values, scale, w, state);
  } else if constexpr (kRule == OptimizerKind::kLazyAdam) {
    UpdateAdam(spec, at_step, 0, dim, values, scale, w, state, state + dim);
  } else if constexpr (kRule == OptimizerKind::kFtrl) {
    UpdateFtrl(spec, dim, values, scale, w, state, state + dim);
  } else {
    static_assert(kRule == OptimizerKind::kAdam || kRule == OptimizerKind::kAdamW);
    const float decay = kRule == OptimizerKind::kAdamW ? spec.weight_decay : 0;
    const BiasCorrection correction = corrections.At(CountUpdate(state + 2 * dim));
    UpdateAdam(spec, correction, decay, dim, values, scale, w, state, state + dim);
  }
}

}  // namespace hdps
