// Stochastic gradient descent.
#pragma once

#include "common/job/optimizers/optimizer_rule.h"

namespace hdps::optimizers {

struct Sgd : OptimizerRule {
  static constexpr char kName[] = "sgd";
  static constexpr char kFormula[] = "w -= lr g";
  static constexpr char kPaper[] = "";
  static constexpr OptimizerSetting kSettings[] = {kLearningRate};
  static constexpr bool kLoopsKnowDims = true;

  HDPS_RULE static void Update(const OptimizerSettings& s, Factor, float g, float& w) {
    w -= s.learning_rate * g;
  }
};

}  // namespace hdps::optimizers
