// Classifies whole numbers by the shape of their histogram: ids and codes look unlike counts.
#pragma once

#include <vector>

namespace hdps {

enum class WholeShape {
  kUnknown,  // Too few rows to tell, or few values over a range.
  kFalling,  // Small numbers are the most frequent, as in counts and amounts.
  kSmooth,   // Neighbors have similar frequencies, or round numbers lead, as in ages.
  kJagged,   // Frequencies of neighbors are unrelated, as in codes and ids.
  kFlat,     // All have similar frequencies, as ids that were given out in turn.
  kSpread    // Numbers are scattered over a wide range, as hashes.
};

// Returns the shape of a sample of whole numbers that repeat.
WholeShape ShapeOfWhole(const std::vector<double>& sample);

}  // namespace hdps
