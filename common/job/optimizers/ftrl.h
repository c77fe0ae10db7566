// FTRL-Proximal, which sets weights of little use to exactly zero.
#pragma once

#include <cmath>

#include "common/job/optimizers/optimizer_rule.h"

namespace hdps::optimizers {

// The per-coordinate rule with beta = 0, which the initial accumulator replaces.
struct Ftrl : OptimizerRule {
  static constexpr char kName[] = "ftrl";
  static constexpr char kFormula[] =
      "z += g - (sqrt(n + g^2) - sqrt(n)) / lr w; n += g^2; w = 0 where abs(z) <= l1, else -(z - "
      "sign(z) l1) / (sqrt(n) / lr + l2)";
  static constexpr char kPaper[] = "McMahan et al. 2013, algorithm 1";
  static constexpr OptimizerSetting kSettings[] = {kLearningRate, kL1, kL2, kInitialAccumulator};
  static constexpr size_t kStateArrays = 2;

  static constexpr float InitialState(const OptimizerSettings& s, size_t array) {
    return array == 1 ? s.initial_accumulator : 0;
  }
  HDPS_RULE static void Update(const OptimizerSettings& s, Factor, float g, float& w, float& z,
                               float& n) {
    const float grown = n + g * g;
    const float root = sqrtf(grown);
    z += g - (root - sqrtf(n)) / s.learning_rate * w;
    n = grown;
    // Without a branch, so that the loop is vectorized. w is 0 and not -0 if |z| <= l1.
    const float excess = fabsf(z) - s.l1;
    const float size = excess / (root / s.learning_rate + s.l2);
    const float moved = z > 0 ? -size : size;
    w = excess > 0 ? moved : 0.0f;
  }
};

}  // namespace hdps::optimizers
