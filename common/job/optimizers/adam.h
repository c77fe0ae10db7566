// Adam, and the common part of its family.
#pragma once

#include <cmath>

#include "common/job/optimizers/optimizer_rule.h"

namespace hdps::optimizers {

// Returns base^exponent by squaring, with the same bits on every machine, unlike pow().
HDPS_HOST_DEVICE inline double PowerBySquaring(double base, int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

// The factors 1 / (1 - beta^t) that correct the two moments for their start at zero.
struct BiasCorrection {
  float first = 1, second = 1;
};

// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2. The direction of the update is m^ /
// (sqrt(v^) + epsilon), where m^ and v^ are the corrected values.
struct AdamFamily : OptimizerRule {
  static constexpr size_t kStateArrays = 2;
  static constexpr FactorOf kFactorOf = FactorOf::kUpdates;
  using Factor = BiasCorrection;

  HDPS_HOST_DEVICE static inline BiasCorrection FactorAt(const OptimizerSettings& s, int64_t t) {
    return {static_cast<float>(1.0 / (1.0 - PowerBySquaring(s.beta1, t))),
            static_cast<float>(1.0 / (1.0 - PowerBySquaring(s.beta2, t)))};
  }
  HDPS_RULE static float AdamDirection(const OptimizerSettings& s, BiasCorrection correction,
                                       float g, float& m, float& v) {
    m = s.beta1 * m + (1 - s.beta1) * g;
    v = s.beta2 * v + (1 - s.beta2) * (g * g);
    return m * correction.first / (sqrtf(v * correction.second) + s.epsilon);
  }
  // Updates a weight with decay as in AdamW. Plain Adam uses decay 0, with the same bits.
  HDPS_RULE static void Move(const OptimizerSettings& s, float direction, float decay, float& w) {
    w -= s.learning_rate * (direction + decay * w);
  }
};

struct Adam : AdamFamily {
  static constexpr char kName[] = "adam";
  static constexpr char kFormula[] =
      "m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; w -= lr m^ / (sqrt(v^) + "
      "epsilon), m^ and v^ corrected for their start at 0 by the row's number of updates";
  static constexpr char kPaper[] = "Kingma and Ba 2015";
  static constexpr OptimizerSetting kSettings[] = {kLearningRate, kBeta1, kBeta2, kEpsilon};

  HDPS_RULE static void Update(const OptimizerSettings& s, BiasCorrection correction, float g,
                               float& w, float& m, float& v) {
    Move(s, AdamDirection(s, correction, g, m, v), 0, w);
  }
};

}  // namespace hdps::optimizers
