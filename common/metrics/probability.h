// Converts logits to probabilities.
#pragma once

#include <cmath>

namespace hdps {

// Returns the probability of a logit, in double, which distinguishes values near 0 and 1 much
// longer than float does.
inline double ProbabilityOf(double logit) {
  const double e = std::exp(-std::fabs(logit));
  return logit >= 0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
}

}  // namespace hdps
