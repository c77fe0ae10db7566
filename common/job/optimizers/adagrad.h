// Adagrad: each weight's rate falls with the sum of its squared gradients.
#pragma once

#include <cmath>

#include "common/job/optimizers/optimizer_rule.h"

namespace hdps::optimizers {

struct Adagrad : OptimizerRule {
  static constexpr char kName[] = "adagrad";
  static constexpr char kFormula[] = "h += g^2; w -= lr g / (sqrt(h) + epsilon)";
  static constexpr char kPaper[] = "Duchi et al. 2011";
  static constexpr OptimizerSetting kSettings[] = {kLearningRate, kEpsilon, kInitialAccumulator};
  static constexpr size_t kStateArrays = 1;
  static constexpr bool kLoopsKnowDims = true;

  static constexpr float InitialState(const OptimizerSettings& s, size_t) {
    return s.initial_accumulator;
  }
  HDPS_RULE static void Update(const OptimizerSettings& s, Factor, float g, float& w, float& h) {
    h += g * g;
    w -= s.learning_rate * g / (sqrtf(h) + s.epsilon);
  }
};

}  // namespace hdps::optimizers
