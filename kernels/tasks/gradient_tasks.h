// Fills, scales and finishes gradients in place.
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

// Finishes one element of a gradient for an optimizer's rule: adds the penalties of the loss by its
// weight, multiplies by `shrink`, and limits it to +-clip_value if that is not 0. Gives the same
// bits as FinishGradients() of embedding/memory/update_terms.h.
struct GradientFinish {
  float l1 = 0, l2 = 0, shrink = 1, clip_value = 0;

  HDPS_ROW_TASK bool none() const { return l1 == 0 && l2 == 0 && shrink == 1 && clip_value == 0; }
  HDPS_ROW_TASK float operator()(float g, float weight) const {
    if (l1 != 0 || l2 != 0) {
      const float sign = weight > 0 ? 1.0f : weight < 0 ? -1.0f : 0.0f;
      g += l2 * weight + l1 * sign;
    }
    if (shrink != 1) g *= shrink;
    if (clip_value > 0) g = g < -clip_value ? -clip_value : clip_value < g ? clip_value : g;
    return g;
  }
};

}  // namespace hdps
