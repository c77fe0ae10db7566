// How often each of some whole numbers comes, as a shape: ids and codes look otherwise than counts.
#pragma once

#include <vector>

namespace hdps {

enum class WholeShape {
  kUnknown,  // Too few rows to tell, or a value here and there.
  kFalling,  // The least come most, as of counts and amounts.
  kSmooth,   // Neighbours come about as often, or round numbers most, as of ages.
  kJagged,   // A number says nothing of how often its neighbour comes, as of codes and ids.
  kFlat,     // All come about as often, as of ids that were given out in turn.
  kSpread    // Anywhere in a wide range, as hashes do.
};

// Of a sample of whole numbers that come again.
WholeShape ShapeOfWhole(const std::vector<double>& sample);

}  // namespace hdps
