// The parts of an optimizer: one struct with its words, settings, state and update rule.
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

// The factor that all weights of a row share in one update, by its source.
enum class FactorOf : uint8_t {
  kNothing,  // There is none.
  kStep,     // FactorAt(settings, step): step is the number of the update as workers count, from 1.
  // FactorAt(settings, n): n is the number of this row's updates, which a float after the state of
  // the weights counts.
  kUpdates,
  // FactorFrom(settings, mean, kept): the mean square of the row's gradient, and a float after the
  // state of the weights that belongs to the rule.
  kSquares,
};

// The defaults of an optimizer. Each must also have
//   kName, kFormula, kPaper                       the word in job files, and texts for people
//   kSettings                                     its settings, in the order of printed jobs
//   Update(settings, factor, g, w [, s0 [, s1]])  updates one weight and its state arrays
// or, if it updates whole tensors, Direction() and Rate() as in lamb.h.
struct OptimizerRule {
  // Floats of state for every weight; the arrays follow the weights one after the other.
  static constexpr size_t kStateArrays = 0;
  static constexpr FactorOf kFactorOf = FactorOf::kNothing;
  struct Factor {};
  // Needs all weights of a tensor at once: only for dense weights.
  static constexpr bool kWholeTensors = false;
  // Compile loops for the usual dims; costs three more copies of the code for each dim.
  static constexpr bool kLoopsKnowDims = false;
  // Initial state of a row: that of a state array, and that of the float after them.
  static constexpr float InitialState(const OptimizerSettings&, size_t /*array*/) { return 0; }
  static constexpr float InitialKept(const OptimizerSettings&) { return 0; }
};

// Returns the floats of a rule's state after `dim` weights.
template <typename Rule>
constexpr size_t StateFloatsOf(size_t dim) {
  const bool keeps_one =
      Rule::kFactorOf == FactorOf::kUpdates || Rule::kFactorOf == FactorOf::kSquares;
  return Rule::kStateArrays * dim + (keeps_one ? 1 : 0);
}

// A row counts its updates in a float, which is exact up to here; the bias correction is 1 long
// before.
inline constexpr float kUpdatesCountedMax = 16777216.0f;  // 2^24

// Counts one more update; returns the count, from 1.
HDPS_RULE int64_t CountUpdate(float* count) {
  const float grown = *count + 1.0f;
  *count = grown < kUpdatesCountedMax ? grown : kUpdatesCountedMax;
  return static_cast<int64_t>(*count);
}

}  // namespace hdps
