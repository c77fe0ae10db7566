// Updates one row by an optimizer known at compile time; inlined into loops over rows for each
// vector width. All memory of the host is updated by this code: server rows in every weight format,
// dense weights, and rows kept at workers.
// servers in every weight format, dense weights, rows that a worker keeps.
#pragma once

#include <glog/logging.h>

#include <cstddef>
#include <cstdint>

#include "common/job/optimizers/optimizer_rule.h"
#include "common/job/optimizers/optimizer_settings.h"
#include "common/job/optimizers/optimizers.h"
#include "kernels/vector_width.h"

namespace hdps {

enum class OptimizerKind : uint8_t;

// Factors of the gradient: element i is (values[i] * part) * sum, with one worker's scale, then the
// sum's.
struct GradientScale {
  float part = 1, sum = 1;
};

// Sixteen partial sums, element i in sum i % 16, then halves are added to halves: an order that
// every vector width can keep.
typedef float SixteenFloats __attribute__((vector_size(64), aligned(4), may_alias));
HDPS_INLINE float SumOfLanes(const SixteenFloats& lanes) {
  typedef float Eight __attribute__((vector_size(32)));
  typedef float Four __attribute__((vector_size(16)));
  const Eight eight = __builtin_shufflevector(lanes, lanes, 0, 1, 2, 3, 4, 5, 6, 7) +
                      __builtin_shufflevector(lanes, lanes, 8, 9, 10, 11, 12, 13, 14, 15);
  const Four four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) +
                    __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  return (four[0] + four[2]) + (four[1] + four[3]);
}
// Returns the sum of squares of the scaled gradient.
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

// The factors of the rows of one batch, which belong to one step.
template <typename Rule>
class RowFactors {
 public:
  using Factor = typename Rule::Factor;

  RowFactors(const OptimizerSettings& settings, int64_t step) : settings_(settings) {
    if constexpr (Rule::kFactorOf == FactorOf::kStep) {
      of_step_ = Rule::FactorAt(settings, step);
    }
  }

  // Returns the row's factor. `kept` is the float behind the state of the row's weights, if the
  // rule has one.
  HDPS_INLINE Factor Of(const float* values, GradientScale scale, size_t dim, float* kept) {
    if constexpr (Rule::kFactorOf == FactorOf::kStep) {
      return of_step_;
    } else if constexpr (Rule::kFactorOf == FactorOf::kUpdates) {
      return OfUpdate(CountUpdate(kept));
    } else if constexpr (Rule::kFactorOf == FactorOf::kSquares) {
      const float squares = SumOfSquares(values, scale, dim);
      return Rule::FactorFrom(settings_, squares / static_cast<float>(dim), kept);
    } else {
      return Factor();
    }
  }

 private:
  // Factors of recent counts are cached: rows of one batch have few different counts.
  static constexpr size_t kRemembered = Rule::kFactorOf == FactorOf::kUpdates ? 64 : 1;

  HDPS_INLINE Factor OfUpdate(int64_t n) {
    const size_t place = static_cast<size_t>(n) % kRemembered;
    if (counts_[place] != n) [[unlikely]] {
      Remember(place, n);
    }
    return of_counts_[place];
  }
  __attribute__((noinline)) void Remember(size_t place, int64_t n) {
    counts_[place] = n;
    of_counts_[place] = Rule::FactorAt(settings_, n);
  }

  const OptimizerSettings settings_;
  Factor of_step_ = {};
  int64_t counts_[kRemembered] = {};  // 0: none.
  Factor of_counts_[kRemembered];
};

// Updates all weights of a row. State arrays that the rule does not have are not accessed.
template <typename Rule>
HDPS_INLINE void UpdateWeights(const OptimizerSettings& settings,
                               const typename Rule::Factor& factor, size_t dim,
                               const float* __restrict values, GradientScale scale,
                               float* __restrict w, float* __restrict s0, float* __restrict s1) {
  static_assert(Rule::kStateArrays <= 2);
  for (size_t i = 0; i < dim; ++i) {
    const float g = values[i] * scale.part * scale.sum;
    if constexpr (Rule::kStateArrays == 0) {
      Rule::Update(settings, factor, g, w[i]);
    } else if constexpr (Rule::kStateArrays == 1) {
      Rule::Update(settings, factor, g, w[i], s0[i]);
    } else {
      Rule::Update(settings, factor, g, w[i], s0[i], s1[i]);
    }
  }
}

// Updates one row: its weights and its state, which may be elsewhere.
template <typename Rule>
HDPS_INLINE void UpdateOneRow(const OptimizerSettings& settings, RowFactors<Rule>& factors,
                              size_t dim, const float* values, GradientScale scale, float* weights,
                              float* state) {
  const auto factor = factors.Of(values, scale, dim, state + Rule::kStateArrays * dim);
  float* const second = Rule::kStateArrays > 1 ? state + dim : state;
  UpdateWeights<Rule>(settings, factor, dim, values, scale, weights, state, second);
}

// Like WithOptimizer, for optimizers that update rows. Own optimizers have optimizer_loops.h
// instead.
template <typename Call>
void WithRowOptimizer(OptimizerKind kind, const Call& call) {
  WithOptimizer(kind, [&call](auto rule) {
    if constexpr (decltype(rule)::kWholeTensors) {
      LOG(FATAL) << decltype(rule)::kName << " changes whole tensors, not rows";
    } else {
      call(rule);
    }
  });
}

}  // namespace hdps
