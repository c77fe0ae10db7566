// Views of matrices: what every dense operation takes and gives.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hdps {

// A row-major matrix in the memory of one device: element (r, c) is data[r * stride + c].
// A view owns nothing; stride >= cols lets a layer write straight into the columns of a wider one.
struct Matrix {
  float* data = nullptr;
  size_t rows = 0, cols = 0, stride = 0;

  Matrix Columns(size_t first, size_t count) const { return {data + first, rows, count, stride}; }
  Matrix Rows(size_t first, size_t count) const {
    return {data + first * stride, count, cols, stride};
  }
  float* Row(size_t r) const { return data + r * stride; }
};

struct ConstMatrix {
  const float* data = nullptr;
  size_t rows = 0, cols = 0, stride = 0;

  ConstMatrix() = default;
  ConstMatrix(const float* d, size_t r, size_t c, size_t s)
      : data(d), rows(r), cols(c), stride(s) {}
  ConstMatrix(const Matrix& m)  // NOLINT: converts on purpose
      : data(m.data), rows(m.rows), cols(m.cols), stride(m.stride) {}

  ConstMatrix Columns(size_t first, size_t count) const {
    return {data + first, rows, count, stride};
  }
  ConstMatrix Rows(size_t first, size_t count) const {
    return {data + first * stride, count, cols, stride};
  }
  const float* Row(size_t r) const { return data + r * stride; }
};

// A matrix of numbers in bf16, as their bits; like Matrix in all else.
struct Bf16Matrix {
  uint16_t* data = nullptr;
  size_t rows = 0, cols = 0, stride = 0;

  Bf16Matrix Columns(size_t first, size_t count) const {
    return {data + first, rows, count, stride};
  }
  Bf16Matrix Rows(size_t first, size_t count) const {
    return {data + first * stride, count, cols, stride};
  }
  uint16_t* Row(size_t r) const { return data + r * stride; }
};

// Floats from one row to the next in a matrix of its own. Rows of more than a cache line begin with
// one: products of rows that do not take a tenth longer. Where they would lie a multiple of 1 KiB
// apart, they lie two lines more: such rows meet in few sets of the first-level cache, and a
// product that reads them across takes twice as long.
constexpr size_t RowStride(size_t cols) {
  constexpr size_t kLineFloats = 16, kMeetingFloats = 256, kMoreFloats = 32;
  if (cols < kLineFloats) return cols;
  const size_t whole = (cols + kLineFloats - 1) / kLineFloats * kLineFloats;
  return whole % kMeetingFloats == 0 ? whole + kMoreFloats : whole;
}

// The same in numbers of bf16.
constexpr size_t Bf16RowStride(size_t cols) { return 2 * RowStride((cols + 1) / 2); }

// Whether a result replaces what is there or is added to it.
enum class Write : unsigned char { kOver, kAdd };

}  // namespace hdps
