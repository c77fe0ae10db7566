// How far floating point may carry a sum from its exact value, for tests that compare two orders of
// the same sum. What a test allows then follows from its terms, on a machine of any vector width.
#pragma once

#include <cmath>
#include <cstddef>

namespace hdps {

inline constexpr double kFloatRoundoff = 0x1p-24;  // Half a unit in the last place of 1.0f.

// Higham's gamma_n (Accuracy and Stability of Numerical Algorithms, lemma 3.1): what n roundings in
// a row can make of 1, beyond 1.
inline double Gamma(size_t roundings) {
  const double nu = static_cast<double>(roundings) * kFloatRoundoff;
  return nu / (1 - nu);
}

// A sum of `terms` products in floats, in any order, fused with its products or not, lies within
// this of the exact one; `magnitude` is the sum of the products' absolute values.
inline double SumErrorBound(size_t terms, double magnitude) { return Gamma(terms) * magnitude; }

// Two such sums lie within this of each other.
inline double SumsErrorBound(size_t terms, double magnitude) {
  return 2 * SumErrorBound(terms, magnitude);
}

}  // namespace hdps
