// Lion: each step has the size of the rate, and of a mean of gradients only the sign.
#pragma once

#include "common/job/optimizers/optimizer_rule.h"

// Written as those of the library are: see common/job/optimizers/optimizer_rule.h for the parts.
// The sign is softened: a weight whose gradients are all but zero moves by less, and one that has
// had none does not move.
struct Lion : hdps::OptimizerRule {
  static constexpr char kName[] = "lion";
  static constexpr char kFormula[] =
      "c = beta1 m + (1 - beta1) g; w -= lr (c / (|c| + softness) + weight_decay w); m = beta2 m + "
      "(1 - beta2) g";
  static constexpr char kPaper[] = "Chen et al. 2023, with a soft sign";
  // A setting that no optimizer of the library has; it lies in one of the values kept free for
  // that.
  static constexpr hdps::OptimizerSetting kSoftness = {
      "softness", &hdps::OptimizerSettings::own_a,  1e-30,
      1,          "Half a step where |c| is this.", 1e-6f};
  static constexpr hdps::OptimizerSetting kSettings[] = {
      hdps::optimizers::kLearningRate.WithDefault(3e-4f), hdps::optimizers::kBeta1,
      hdps::optimizers::kBeta2.WithDefault(0.99f), hdps::optimizers::kWeightDecay, kSoftness};
  static constexpr size_t kStateArrays = 1;

  HDPS_RULE static void Update(const hdps::OptimizerSettings& s, Factor, float g, float& w,
                               float& m) {
    const float c = s.beta1 * m + (1 - s.beta1) * g;
    w -= s.learning_rate * (c / (__builtin_fabsf(c) + s.own_a) + s.weight_decay * w);
    m = s.beta2 * m + (1 - s.beta2) * g;
  }
};
