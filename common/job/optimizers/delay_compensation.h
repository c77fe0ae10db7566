// Tells for which optimizers gradients can be compensated for the age of their rows
// (train.delay_compensation).
#pragma once

#include "common/job/optimizers/optimizers.h"

namespace hdps {

// Gradient descent, momentum, the Adagrads and the Adams. The others weigh their own history of
// gradients and weights in ways for which the correction was not derived.
constexpr bool TakesCompensation(const OptimizerRecord& record) {
  switch (record.kind) {
    case OptimizerKind::kSgd:
    case OptimizerKind::kMomentum:
    case OptimizerKind::kAdagrad:
    case OptimizerKind::kRowwiseAdagrad:
    case OptimizerKind::kAdam:
    case OptimizerKind::kLazyAdam:
    case OptimizerKind::kAdamW:
      return true;
    default:
      return false;
  }
}

}  // namespace hdps
