// Tells whether answers have become unlike those of the evaluation data.
#pragma once

#include "tools/serve/watch/answer_sums.h"

namespace hdps {

// Answers are compared in windows of at least so many rows and requests: fewer draws have no normal
// mean.
inline constexpr double kDriftRows = 4096, kDriftRequests = 128;

// Two means are far apart if both hold:
// - They differ by more than 5 standard errors. With 40 features and a window a second, a day has
//   3.5 million comparisons, and chance alone goes beyond 5 in two of them.
// - They differ by so much that it matters, because with millions of rows any difference is more
//   than chance: predictions by a quarter of the standard deviation that they have over the
//   evaluation data (a small effect is 0.2 of it: Cohen, Statistical Power Analysis for the
//   Behavioral Sciences, 1988, section 2.2), shares of keys by 5 in 100.
inline constexpr double kDriftErrors = 5, kDriftDeviations = 0.25, kDriftShare = 0.05;

// A difference of two means, in its standard errors and in the unit of what matters.
struct Difference {
  double errors = 0, size = 0;
  bool far(double size_max) const;
};

// Compares the predictions; `size` is in standard deviations over the evaluation data.
Difference PredictionDifference(const AnswerTotals& answers, const AnswerTotals& evaluation);
// Compares the shares of unknown keys; `size` is a share. Of a feature without keys on one side
// there is no difference.
Difference UnknownDifference(const RatioSums& answers, const RatioSums& evaluation);

}  // namespace hdps
