// LAMB: Adam's direction, with a rate for each tensor by the sizes of weights and direction.
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
  // What the tensor moves by, times its direction. A tensor that is all zeros, or is not to move,
  // has no direction to trust.
  static float Rate(const OptimizerSettings& s, double weights_squared, double direction_squared) {
    const bool trusted = weights_squared > 0 && direction_squared > 0;
    const double trust = trusted ? std::sqrt(weights_squared) / std::sqrt(direction_squared) : 1;
    return static_cast<float>(s.learning_rate * trust);
  }
};

}  // namespace hdps::optimizers
