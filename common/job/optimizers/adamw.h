// Adam with decoupled weight decay.
#pragma once

#include "common/job/optimizers/adam.h"

namespace hdps::optimizers {

struct AdamW : AdamFamily {
  static constexpr char kName[] = "adamw";
  static constexpr char kFormula[] = "adam's direction d; w -= lr (d + weight_decay w)";
  static constexpr char kPaper[] = "Loshchilov and Hutter 2019, algorithm 2";
  static constexpr OptimizerSetting kSettings[] = {kLearningRate, kBeta1, kBeta2, kEpsilon,
                                                   kWeightDecay};

  HDPS_RULE static void Update(const OptimizerSettings& s, BiasCorrection correction, float g,
                               float& w, float& m, float& v) {
    Move(s, AdamDirection(s, correction, g, m, v), s.weight_decay, w);
  }
};

}  // namespace hdps::optimizers
