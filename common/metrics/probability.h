// The probability that a logit stands for.
#pragma once

#include <cmath>

namespace hdps {

// The probability that a logit stands for, which it tells apart from 0 and 1 far longer than a
// float of the probability would.
inline double ProbabilityOf(double logit) {
  const double e = std::exp(-std::fabs(logit));
  return logit >= 0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
}

}  // namespace hdps
