// Work on matrices that is the same for every element or every row, written once for host and
// device.
#pragma once

#include <cstddef>
#include <cstdint>
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

HDPS_ROW_TASK inline void WriteTo(float& to, Write write, float value) {
  to = write == Write::kAdd ? to + value : value;
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

// y (+)= x / (1 - rate) for the elements that are kept, 0 for the others. Each is kept with
// probability 1 - rate, which (stream, position of the row in the epoch, column) decides alone.
struct Dropout {
  uint64_t stream = 0;
  uint64_t first_row = 0, row_stride = 1;  // Row r is at position first_row + r * row_stride.
  float rate = 0.0f;
  ConstMatrix x;
  Write write = Write::kOver;
  Matrix y;
  Matrix Over() const { return y; }

  // The finalizer of splitmix64 (Steele et al. 2014).
  HDPS_ROW_TASK static uint64_t Mixed(uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return bits ^ (bits >> 31);
  }
  HDPS_ROW_TASK bool Keeps(size_t row, size_t col) const {
    const uint64_t position = first_row + row * row_stride;
    const uint64_t of_row = Mixed(stream + 0x9e3779b97f4a7c15u * (position + 1));
    const uint64_t bits = Mixed(of_row + 0x9e3779b97f4a7c15u * (col + 1));
    return static_cast<float>(bits >> 40) * 0x1.0p-24f >= rate;
  }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    const float value = Keeps(row, col) ? ElementOf(x, row, col) / (1.0f - rate) : 0.0f;
    WriteTo(ElementOf(y, row, col), write, value);
  }
};

using RowTask = std::variant<Activate, ActivateBackward, Dropout>;

}  // namespace hdps
