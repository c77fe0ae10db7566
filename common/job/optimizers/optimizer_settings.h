// The numeric settings of optimizers, and their descriptions.
#pragma once

#include <cstdint>

namespace hdps {

// The values of all settings that some optimizer has; each optimizer reads those that its record
// names. Names are those of the papers.
struct OptimizerSettings {
  float learning_rate = 0.01f;
  float momentum = 0.9f;
  float rho = 0.9f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float weight_decay = 0;
  float l1 = 0, l2 = 0;
  float initial_accumulator = 0.1f;
  // Unused by the built-in optimizers; for settings of a program's own optimizer.
  float own_a = 0, own_b = 0, own_c = 0, own_d = 0;
  // No setting of a job: steps of the jobs that this one began from (--init), which lazy Adam
  // counts.
  int64_t steps_before = 0;
  friend bool operator==(const OptimizerSettings&, const OptimizerSettings&) = default;
};

// Describes one setting of an optimizer in the job file: its range, both ends included, and its
// default.
struct OptimizerSetting {
  const char* name;
  float OptimizerSettings::*value;
  double min, max;
  const char* doc = "";
  float default_value = OptimizerSettings().*value;

  // The same setting for an optimizer whose paper has another default.
  constexpr OptimizerSetting WithDefault(float other) const {
    OptimizerSetting setting = *this;
    setting.default_value = other;
    return setting;
  }
};

// Settings that several optimizers have.
namespace optimizers {

inline constexpr double kBelowOne = 0.999999;

inline constexpr OptimizerSetting kLearningRate = {"learning_rate",
                                                   &OptimizerSettings::learning_rate, 0, 1e6};
inline constexpr OptimizerSetting kMomentum = {"momentum", &OptimizerSettings::momentum, 0,
                                               kBelowOne};
inline constexpr OptimizerSetting kRho = {"rho", &OptimizerSettings::rho, 0, kBelowOne,
                                          "Decay of the means of squares."};
inline constexpr OptimizerSetting kBeta1 = {"beta1", &OptimizerSettings::beta1, 0, kBelowOne,
                                            "Decay of the mean of gradients."};
inline constexpr OptimizerSetting kBeta2 = {"beta2", &OptimizerSettings::beta2, 0, kBelowOne,
                                            "Decay of the mean of their squares."};
inline constexpr OptimizerSetting kEpsilon = {"epsilon", &OptimizerSettings::epsilon, 1e-30, 1e6};
inline constexpr OptimizerSetting kWeightDecay = {"weight_decay", &OptimizerSettings::weight_decay,
                                                  0, 1e6, "Decoupled."};
inline constexpr OptimizerSetting kL1 = {"l1", &OptimizerSettings::l1, 0, 1e6};
inline constexpr OptimizerSetting kL2 = {"l2", &OptimizerSettings::l2, 0, 1e6};
inline constexpr OptimizerSetting kInitialAccumulator = {
    "initial_accumulator", &OptimizerSettings::initial_accumulator, 0, 1e6,
    "What the sums of squares begin with."};

}  // namespace optimizers
}  // namespace hdps
