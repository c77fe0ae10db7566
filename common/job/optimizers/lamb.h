// LAMB: Adam's direction, with a rate for each tensor from the norms of its weights and direction.
#pragma once

#include <cmath>

#include "common/job/optimizers/adam.h"

namespace hdps::optimizers {

struct Lamb : AdamFamily {
  static constexpr char kName[] = "lamb";
  static constexpr char kFormula[] =
      "d = adam's direction + weight_decay w; w -= lr norm(w) / norm(d) d, over whole tensors";
  static constexpr char kPaper[] = "You et al. 2020, algorithm 2";
  static constexpr OptimizerSetting kSettings[] = {kLearningRate, kBeta1, kBeta2, kEpsilon,
                                                   kWeightDecay};
  static constexpr bool kWholeTensors = true;

  HDPS_RULE static float Direction(const OptimizerSettings& s, BiasCorrection correction, float g,
                                   float w, float& m, float& v) {
    return AdamDirection(s, correction, g, m, v) + s.weight_decay * w;
  }
  // Returns the factor on the tensor's direction. The trust ratio is 1 for a tensor or direction of
  // all zeros.
  static float Rate(const OptimizerSettings& s, double weights_squared, double direction_squared) {
    const bool trusted = weights_squared > 0 && direction_squared > 0;
    const double trust = trusted ? std::sqrt(weights_squared) / std::sqrt(direction_squared) : 1;
    return static_cast<float>(s.learning_rate * trust);
  }
};

}  // namespace hdps::optimizers
