// The gates of a mixture of low-rank cross experts (Wang et al. 2021, eq. 4).
#pragma once

#include "kernels/tasks/row_task.h"

namespace hdps {

// Turns gates [n, K], the logits of the experts, into their softmax; y [n, K * rank] = each
// expert's output x times its gate.
struct GateExperts {
  Matrix gates;
  ConstMatrix x;
  Matrix y;
  Matrix Over() const { return gates; }
  size_t FloatsARow() const { return y.cols; }

  HDPS_ROW_TASK void operator()(size_t row) const {
    const size_t rank = x.cols / gates.cols;
    float largest = ElementOf(gates, row, 0), total = 0.0f;
    for (size_t k = 1; k < gates.cols; ++k) {
      const float logit = ElementOf(gates, row, k);
      largest = largest < logit ? logit : largest;
    }
    for (size_t k = 0; k < gates.cols; ++k) {
      const float value = std::exp(ElementOf(gates, row, k) - largest);
      ElementOf(gates, row, k) = value;
      total += value;
    }
    for (size_t k = 0; k < gates.cols; ++k) {
      const float gate = ElementOf(gates, row, k) /= total;
      for (size_t j = k * rank; j < (k + 1) * rank; ++j) {
        ElementOf(y, row, j) = gate * ElementOf(x, row, j);
      }
    }
  }
};

// Its backward: turns gates into the gradient of the logits, g_k (d_k - sum of g d) with d_k = <dy,
// x> over the columns of expert k, and dy into the gradient of z, where x = tanh(z).
struct GateExpertsBackward {
  Matrix gates;
  ConstMatrix x;
  Matrix dy;
  Matrix Over() const { return gates; }
  size_t FloatsARow() const { return dy.cols; }

  HDPS_ROW_TASK void operator()(size_t row) const {
    const size_t rank = x.cols / gates.cols;
    const auto along = [&](size_t k) {
      return DotOf(&ElementOf(dy, row, k * rank), &ElementOf(x, row, k * rank), rank);
    };
    float mean = 0.0f;
    for (size_t k = 0; k < gates.cols; ++k) mean += ElementOf(gates, row, k) * along(k);
    for (size_t k = 0; k < gates.cols; ++k) {
      const float gate = ElementOf(gates, row, k);
      ElementOf(gates, row, k) = gate * (along(k) - mean);
      for (size_t j = k * rank; j < (k + 1) * rank; ++j) {
        const float value = ElementOf(x, row, j);
        ElementOf(dy, row, j) *= gate * (1.0f - value * value);
      }
    }
  }
};

// Turns dy, the gradient of y = tanh(z), into that of z.
struct TanhBackward {
  ConstMatrix y;
  Matrix dy;
  Matrix Over() const { return dy; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    const float value = ElementOf(y, row, col);
    ElementOf(dy, row, col) *= 1.0f - value * value;
  }
};

}  // namespace hdps
