// Batch normalization, an activation and dropout, each optional, as one pass over a matrix.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/tasks/row_task.h"

namespace hdps {

enum class Activation : uint8_t;  // common/job/activation.h

// Dropout: each element stays with probability 1 - threshold / 2^16, decided only by (stream,
// position of the row in the epoch, column). One 64-bit draw serves four adjacent columns.
struct DropoutMask {
  uint64_t stream = 0;
  uint64_t first_row = 0, row_stride = 1;  // Row r is at position first_row + r * row_stride.
  uint32_t threshold = 0;                  // 0: all elements stay.
  float scale = 1.0f;                      // Factor of the elements that stay.

  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;
  static constexpr size_t kColumnsADraw = 4;

  // Drops a share of `rate`, rounded to a multiple of 2^-16; the scale fits the rounded rate.
  void SetRate(double rate) {
    threshold = static_cast<uint32_t>(rate * 65536.0 + 0.5);
    scale = static_cast<float>(1.0 / (1.0 - static_cast<double>(threshold) / 65536.0));
  }
  // The finalizer of splitmix64 (Steele et al. 2014).
  HDPS_ROW_TASK static uint64_t Mixed(uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return bits ^ (bits >> 31);
  }
  HDPS_ROW_TASK uint64_t OfRow(size_t row) const {
    const uint64_t position = first_row + row * row_stride;
    return Mixed(stream + kStep * (position + 1));
  }
  // Returns the bits of columns [4 group, 4 group + 4), 16 a column, lowest first.
  HDPS_ROW_TASK static uint64_t DrawOf(uint64_t of_row, size_t group) {
    return Mixed(of_row + kStep * (group + 1));
  }
  HDPS_ROW_TASK float FactorAt(size_t row, size_t col) const {
    if (threshold == 0) return 1.0f;
    const uint64_t draw = DrawOf(OfRow(row), col / kColumnsADraw);
    const uint64_t bits = draw >> (16 * (col % kColumnsADraw)) & 0xffffu;
    return bits >= threshold ? scale : 0.0f;
  }
};

// y = factor of the mask * act(h), where h = (z - mean) * factor + bias, or z itself.
struct ElementChain {
  const float* mean = nullptr;  // [cols]; null: no normalization.
  const float* factor = nullptr;
  const float* bias = nullptr;
  Activation activation = {};  // kNone
  DropoutMask mask;

  HDPS_ROW_TASK float InnerAt(float z, size_t col) const {
    return mean == nullptr ? z : (z - mean[col]) * factor[col] + bias[col];
  }
  HDPS_ROW_TASK float ValueAt(float z, size_t row, size_t col) const;  // task_bodies.h
  // Returns the gradient of h from that of y.
  HDPS_ROW_TASK float InnerGradientAt(float dy, float z, size_t row, size_t col) const;
};

// y = chain(z).
struct RunChain {
  ElementChain chain;
  ConstMatrix z;
  Matrix y;
  Matrix Over() const { return y; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    ElementOf(y, row, col) = chain.ValueAt(ElementOf(z, row, col), row, col);
  }
};

// dz (+)= the gradient of z, for a chain without normalization. dz may be dy.
struct RunChainBackward {
  ElementChain chain;
  ConstMatrix z, dy;
  Write write = Write::kOver;
  Matrix dz;
  Matrix Over() const { return dz; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    const float gradient =
        chain.InnerGradientAt(ElementOf(dy, row, col), ElementOf(z, row, col), row, col);
    WriteTo(ElementOf(dz, row, col), write, gradient);
  }
};

}  // namespace hdps
