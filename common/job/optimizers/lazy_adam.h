// Adam with a bias correction from the number of the step, so that rows keep no count.
#pragma once

#include "common/job/optimizers/adam.h"

namespace hdps::optimizers {

struct LazyAdam : AdamFamily {
  static constexpr char kName[] = "lazy_adam";
  static constexpr char kFormula[] = "adam, corrected by the number of the step";
  static constexpr char kPaper[] = "Kingma and Ba 2015";
  static constexpr OptimizerSetting kSettings[] = {kLearningRate, kBeta1, kBeta2, kEpsilon};
  static constexpr FactorOf kFactorOf = FactorOf::kStep;
  static constexpr bool kLoopsKnowDims = true;

  HDPS_HOST_DEVICE static inline BiasCorrection FactorAt(const OptimizerSettings& s, int64_t t) {
    return AdamFamily::FactorAt(s, t + s.steps_before);
  }
  HDPS_RULE static void Update(const OptimizerSettings& s, BiasCorrection correction, float g,
                               float& w, float& m, float& v) {
    Move(s, AdamDirection(s, correction, g, m, v), 0, w);
  }
};

}  // namespace hdps::optimizers
