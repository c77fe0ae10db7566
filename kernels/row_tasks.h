// Work on matrices that is the same for every element or every row, written once for host and
// device.
#pragma once

#include <cstddef>
#include <variant>

#include "common/job/activation.h"
#include "kernels/matrix.h"

#ifdef __CUDACC__
#define HDPS_ROW_TASK __host__ __device__
#else
#define HDPS_ROW_TASK
#endif

namespace hdps {

// A task is called once for each element (row, column) or, where it only has that, once for each
// row of what Over() gives. The calls may come in any order and at the same time, so none reads
// what another writes. All that a task points to is in the memory of the device.

template <typename AnyMatrix>
HDPS_ROW_TASK auto& ElementOf(const AnyMatrix& matrix, size_t row, size_t col) {
  return matrix.data[row * matrix.stride + col];
}

// y = act(z).
struct Activate {
  Activation kind = Activation::kNone;
  ConstMatrix z;
  Matrix y;
  Matrix Over() const { return y; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    ElementOf(y, row, col) = ActivationOf(kind, ElementOf(z, row, col));
  }
};

// dy, the gradient of act(z), becomes that of z.
struct ActivateBackward {
  Activation kind = Activation::kNone;
  ConstMatrix z;
  Matrix dy;
  Matrix Over() const { return dy; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    ElementOf(dy, row, col) *= ActivationSlope(kind, ElementOf(z, row, col));
  }
};

using RowTask = std::variant<Activate, ActivateBackward>;

}  // namespace hdps
