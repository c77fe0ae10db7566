// What becomes of gradients in place: filled, scaled, finished for an optimizer's rule.
#pragma once

#include "kernels/tasks/row_task.h"

namespace hdps {

struct FillElements {
  float value = 0;
  Matrix y;
  Matrix Over() const { return y; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const { ElementOf(y, row, col) = value; }
};

// y *= factor.
struct ScaleElements {
  float factor = 1;
  Matrix y;
  Matrix Over() const { return y; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const { ElementOf(y, row, col) *= factor; }
};

// The gradient times `scale`, the penalties of the loss by the weights added, times `shrink`, each
// element within +-clip_value where that is not 0: as FinishGradients() of
// embedding/memory/update_terms.h, to the bit.
struct FinishGradient {
  float scale = 1, l1 = 0, l2 = 0, shrink = 1, clip_value = 0;
  ConstMatrix weights;
  Matrix gradient;
  Matrix Over() const { return gradient; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    float g = ElementOf(gradient, row, col) * scale;
    if (l1 != 0 || l2 != 0) {
      const float w = ElementOf(weights, row, col);
      const float sign = w > 0 ? 1.0f : w < 0 ? -1.0f : 0.0f;
      g += l2 * w + l1 * sign;
    }
    if (shrink != 1) g *= shrink;
    if (clip_value > 0) g = g < -clip_value ? -clip_value : clip_value < g ? clip_value : g;
    ElementOf(gradient, row, col) = g;
  }
};

}  // namespace hdps
