// Adadelta: scales steps by the size of earlier steps, so that they have the unit of the weights.
#pragma once

#include <cmath>

#include "common/job/optimizers/optimizer_rule.h"

namespace hdps::optimizers {

struct Adadelta : OptimizerRule {
  static constexpr char kName[] = "adadelta";
  static constexpr char kFormula[] =
      "n = rho n + (1 - rho) g^2; d = sqrt(u + epsilon) / sqrt(n + epsilon) g; u = rho u + (1 - "
      "rho) d^2; w -= lr d";
  static constexpr char kPaper[] = "Zeiler 2012, algorithm 1";
  static constexpr OptimizerSetting kSettings[] = {
      kLearningRate.WithDefault(1.0f), kRho.WithDefault(0.95f), kEpsilon.WithDefault(1e-6f)};
  static constexpr size_t kStateArrays = 2;

  HDPS_RULE static void Update(const OptimizerSettings& s, Factor, float g, float& w, float& n,
                               float& u) {
    n = s.rho * n + (1 - s.rho) * (g * g);
    const float step = sqrtf(u + s.epsilon) / sqrtf(n + s.epsilon) * g;
    u = s.rho * u + (1 - s.rho) * (step * step);
    w -= s.learning_rate * step;
  }
};

}  // namespace hdps::optimizers
