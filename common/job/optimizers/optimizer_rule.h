// What an optimizer is made of: one struct with its words, its settings, its state and its rule.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/job/optimizers/optimizer_settings.h"

// The rule of a weight is compiled for the host, into copies of loops for each vector width, and
// for the device; so it is inlined everywhere.
#ifdef __CUDACC__
#define HDPS_HOST_DEVICE __host__ __device__
#else
#define HDPS_HOST_DEVICE
#endif
#define HDPS_RULE HDPS_HOST_DEVICE inline __attribute__((always_inline))

namespace hdps {

// What all weights of a row have in common in one update, and where it comes from.
enum class FactorOf : uint8_t {
  kNothing,  // There is none.
  kStep,     // FactorAt(settings, step): the number of the update as the workers count, from 1.
  kUpdates,  // FactorAt(settings, n): this is the row's n-th update; a float behind the state of
             // the weights counts them.
  kSquares,  // FactorFrom(settings, mean, kept): the mean square of the row's gradient, and a float
             // behind the state of the weights that is the rule's own.
};

// What an optimizer has unless it says otherwise. Besides, each has
//   kName, kFormula, kPaper                       words: the job file's, and for the reader
//   kSettings                                     those it reads, in the order of printed jobs
//   Update(settings, factor, g, w [, s0 [, s1]])  one weight and its state arrays
// or, where it changes whole tensors, Direction() and Rate() as in lamb.h.
struct OptimizerRule {
  // Floats of state for every weight; the arrays lie one behind the other behind the weights.
  static constexpr size_t kStateArrays = 0;
  static constexpr FactorOf kFactorOf = FactorOf::kNothing;
  struct Factor {};
  // Needs all weights of a tensor at once: only for dense weights.
  static constexpr bool kWholeTensors = false;
  // Loops that know the usual dims are worth three more copies of the code for each dim.
  static constexpr bool kLoopsKnowDims = false;
  // State of a row that has never been updated: of a state array, and of the float behind them.
  static constexpr float InitialState(const OptimizerSettings&, size_t /*array*/) { return 0; }
  static constexpr float InitialKept(const OptimizerSettings&) { return 0; }
};

// Floats of a rule's state behind `dim` weights.
template <typename Rule>
constexpr size_t StateFloatsOf(size_t dim) {
  const bool keeps_one =
      Rule::kFactorOf == FactorOf::kUpdates || Rule::kFactorOf == FactorOf::kSquares;
  return Rule::kStateArrays * dim + (keeps_one ? 1 : 0);
}

// A row counts its updates in a float, exactly up to here; there the bias correction is long 1.
inline constexpr float kUpdatesCountedMax = 16777216.0f;  // 2^24

// Counts one more update; the count from 1.
HDPS_RULE int64_t CountUpdate(float* count) {
  const float grown = *count + 1.0f;
  *count = grown < kUpdatesCountedMax ? grown : kUpdatesCountedMax;
  return static_cast<int64_t>(*count);
}

}  // namespace hdps
