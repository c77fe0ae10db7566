// Adagrad with one sum of squares for a whole row, as recommenders use it to save memory.
#pragma once

#include <cmath>

#include "common/job/optimizers/optimizer_rule.h"

namespace hdps::optimizers {

struct RowwiseAdagrad : OptimizerRule {
  static constexpr char kName[] = "rowwise_adagrad";
  static constexpr char kFormula[] =
      "h += mean of g^2 over the row; w -= lr g / (sqrt(h) + epsilon)";
  static constexpr char kPaper[] = "Duchi et al. 2011; one h a row";
  static constexpr OptimizerSetting kSettings[] = {kLearningRate, kEpsilon, kInitialAccumulator};
  static constexpr FactorOf kFactorOf = FactorOf::kSquares;
  static constexpr bool kLoopsKnowDims = true;
  using Factor = float;  // The rate of the row's weights.

  static constexpr float InitialKept(const OptimizerSettings& s) { return s.initial_accumulator; }
  HDPS_RULE static float FactorFrom(const OptimizerSettings& s, float mean_square, float* h) {
    *h += mean_square;
    return s.learning_rate / (sqrtf(*h) + s.epsilon);
  }
  HDPS_RULE static void Update(const OptimizerSettings&, float rate, float g, float& w) {
    w -= rate * g;
  }
};

}  // namespace hdps::optimizers
