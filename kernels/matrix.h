// Views of matrices: the operands and results of all dense operations.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hdps {

// A row-major matrix in the memory of one device: element (r, c) is data[r * stride + c]. A view
// owns nothing; with stride > cols a layer can write into the columns of a wider matrix.
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

// A matrix of bf16 numbers, stored as their bits; otherwise like Matrix.
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

// Returns the distance in floats between rows of a new matrix. Rows longer than a cache line begin
// at one: products of unaligned rows take a tenth longer. Rows that would be a multiple of 1 KiB
// apart get two more lines: they would share few sets of the first-level cache, and a product that
// reads them across would take twice as long.
constexpr size_t RowStride(size_t cols) {
  constexpr size_t kLineFloats = 16, kMeetingFloats = 256, kMoreFloats = 32;
  if (cols < kLineFloats) return cols;
  const size_t whole = (cols + kLineFloats - 1) / kLineFloats * kLineFloats;
  return whole % kMeetingFloats == 0 ? whole + kMoreFloats : whole;
}

// Returns the distance in bf16 numbers between rows of a new matrix.
constexpr size_t Bf16RowStride(size_t cols) { return 2 * RowStride((cols + 1) / 2); }

// Whether a result replaces what is there or is added to it.
enum class Write : unsigned char { kOver, kAdd };

}  // namespace hdps
