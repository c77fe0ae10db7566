// Gradient descent with momentum.
#pragma once

#include "common/job/optimizers/optimizer_rule.h"

namespace hdps::optimizers {

struct Momentum : OptimizerRule {
  static constexpr char kName[] = "momentum";
  static constexpr char kFormula[] = "v = momentum v + g; w -= lr v";
  static constexpr char kPaper[] = "Polyak 1964";
  static constexpr OptimizerSetting kSettings[] = {kLearningRate, kMomentum};
  static constexpr size_t kStateArrays = 1;

  HDPS_RULE static void Update(const OptimizerSettings& s, Factor, float g, float& w, float& v) {
    v = s.momentum * v + g;
    w -= s.learning_rate * v;
  }
};

}  // namespace hdps::optimizers
