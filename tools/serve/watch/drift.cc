// Compares means by their standard errors.
#include "tools/serve/watch/drift.h"

#include <cmath>
#include <limits>

namespace hdps {
namespace {

// Returns how many standard errors the means differ by; without any error, all differences are
// beyond chance.
double ErrorsBetween(const RatioSums& a, const RatioSums& b) {
  const double difference = std::abs(a.Mean() - b.Mean());
  if (difference == 0) return 0;
  const double error = std::sqrt(a.ErrorSquare() + b.ErrorSquare());
  return error > 0 ? difference / error : std::numeric_limits<double>::infinity();
}

}  // namespace

bool Difference::far(double size_max) const { return errors > kDriftErrors && size > size_max; }

Difference PredictionDifference(const AnswerTotals& answers, const AnswerTotals& evaluation) {
  const double difference = std::abs(answers.prediction.Mean() - evaluation.prediction.Mean());
  if (difference == 0) return {};
  const double deviation = evaluation.Deviation();
  return {ErrorsBetween(answers.prediction, evaluation.prediction),
          deviation > 0 ? difference / deviation : std::numeric_limits<double>::infinity()};
}

Difference UnknownDifference(const RatioSums& answers, const RatioSums& evaluation) {
  if (answers.items <= 0 || evaluation.items <= 0) return {};
  return {ErrorsBetween(answers, evaluation), std::abs(answers.Mean() - evaluation.Mean())};
}

}  // namespace hdps
