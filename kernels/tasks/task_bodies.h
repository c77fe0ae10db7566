// Bodies of tasks that depend on the kind of an activation or a loss. Only code that runs tasks
// includes them, so code that passes tasks on does not depend on the list of kinds.
#pragma once

#include <cstddef>

#include "common/job/activation.h"
#include "common/job/spec/loss_kind.h"
#include "kernels/row_tasks.h"

namespace hdps {

HDPS_ROW_TASK inline void Activate::operator()(size_t row, size_t col) const {
  ElementOf(y, row, col) = ActivationOf(kind, ElementOf(z, row, col));
}

HDPS_ROW_TASK inline void ActivateBackward::operator()(size_t row, size_t col) const {
  ElementOf(dy, row, col) *= ActivationSlope(kind, ElementOf(z, row, col));
}

HDPS_ROW_TASK inline float ElementChain::ValueAt(float z, size_t row, size_t col) const {
  return ActivationOf(activation, InnerAt(z, col)) * mask.FactorAt(row, col);
}

HDPS_ROW_TASK inline float ElementChain::InnerGradientAt(float dy, float z, size_t row,
                                                         size_t col) const {
  const float gradient = dy * mask.FactorAt(row, col), h = InnerAt(z, col);
  if (activation == Activation::kRelu) return h > 0.0f ? gradient : 0.0f;
  return gradient * ActivationSlope(activation, h);
}

HDPS_ROW_TASK inline void LossRows::operator()(size_t row) const {
  if (kind == LossKind::kLogloss) {
    Logloss(row);
  } else if (kind == LossKind::kSoftmax) {
    Softmax(row);
  } else {
    Squared(row);
  }
  if (weights != nullptr) losses[row] *= weights[row];
}

}  // namespace hdps
