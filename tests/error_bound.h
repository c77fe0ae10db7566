// Bounds the rounding error of sums, for tests that compare two orders of the same sum. The
// tolerance then follows from the terms and holds for any vector width.
#pragma once

#include <cmath>
#include <cstddef>

namespace hdps {

inline constexpr double kFloatRoundoff = 0x1p-24;  // Half a unit in the last place of 1.0f.

// Returns Higham's gamma_n (Accuracy and Stability of Numerical Algorithms, lemma 3.1): the largest
// relative error of n roundings in a row.
inline double Gamma(size_t roundings) {
  const double nu = static_cast<double>(roundings) * kFloatRoundoff;
  return nu / (1 - nu);
}

// Bounds the error of a float sum of `terms` products, in any order, with or without fused
// multiply-add; `magnitude` is the sum of the products' absolute values.
inline double SumErrorBound(size_t terms, double magnitude) { return Gamma(terms) * magnitude; }

// Bounds the difference of two such sums.
inline double SumsErrorBound(size_t terms, double magnitude) {
  return 2 * SumErrorBound(terms, magnitude);
}

}  // namespace hdps
