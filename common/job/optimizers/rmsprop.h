// RMSProp: each weight's rate falls with the size of its recent gradients.
#pragma once

#include <cmath>

#include "common/job/optimizers/optimizer_rule.h"

namespace hdps::optimizers {

struct RmsProp : OptimizerRule {
  static constexpr char kName[] = "rmsprop";
  static constexpr char kFormula[] = "n = rho n + (1 - rho) g^2; w -= lr g / (sqrt(n) + epsilon)";
  static constexpr char kPaper[] = "Tieleman and Hinton 2012";
  static constexpr OptimizerSetting kSettings[] = {kLearningRate, kRho, kEpsilon};
  static constexpr size_t kStateArrays = 1;

  HDPS_RULE static void Update(const OptimizerSettings& s, Factor, float g, float& w, float& n) {
    n = s.rho * n + (1 - s.rho) * (g * g);
    w -= s.learning_rate * g / (sqrtf(n) + s.epsilon);
  }
};

}  // namespace hdps::optimizers
