// One update of one row by an optimizer that is known when this is compiled, to be inlined into
// loops over rows for each vector width. All memory of the host is updated by this code: rows of
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

// Element i of the gradient is (values[i] * part) * sum: one worker's scale, then the sum's.
struct GradientScale {
  float part = 1, sum = 1;
};

// Sixteen partial sums, element i in sum i % 16, then halves added to halves: an order that every
// vector width can keep.
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
// Of the scaled gradient.
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

// The factors of the rows of one batch, which is an update of one step.
template <typename Rule>
class RowFactors {
 public:
  using Factor = typename Rule::Factor;

  RowFactors(const OptimizerSettings& settings, int64_t step) : settings_(settings) {
    if constexpr (Rule::kFactorOf == FactorOf::kStep) {
      of_step_ = Rule::FactorAt(settings, step);
    }
  }

  // `kept` is the float behind the state of the row's weights, if the rule has one.
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
  // Those of the counts seen last are kept: rows of one batch have few different ones.
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

// All weights of a row. Arrays of state that the rule does not have are not looked at.
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

// One row: its weights and, elsewhere or behind them, its state.
template <typename Rule>
HDPS_INLINE void UpdateOneRow(const OptimizerSettings& settings, RowFactors<Rule>& factors,
                              size_t dim, const float* values, GradientScale scale, float* weights,
                              float* state) {
  const auto factor = factors.Of(values, scale, dim, state + Rule::kStateArrays * dim);
  float* const second = Rule::kStateArrays > 1 ? state + dim : state;
  UpdateWeights<Rule>(settings, factor, dim, values, scale, weights, state, second);
}

// As WithOptimizer, for those that change rows. Own optimizers do not come here: see
// optimizer_loops.h.
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
