// What layers that are computed in blocks of examples by small products have in common: how rows
// are laid out for the products, and how examples are cut.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/matrix.h"
#include "kernels/products/small_gemm.h"
#include "kernels/vector_width.h"

namespace hdps {

// Returns the next number of columns that a small product can have.
constexpr size_t PaddedColumns(size_t count) {
  return (count + kSmallProductCols - 1) / kSmallProductCols * kSmallProductCols;
}

// Returns the small product c (+)= a b, whose columns are a multiple of kSmallProductCols.
inline SmallGemm ProductOf(ConstMatrix a, ConstMatrix b, Matrix c, Write write = Write::kOver) {
  return {.a = a.data,
          .a_row = a.stride,
          .a_depth = 1,
          .b = b.data,
          .b_stride = b.stride,
          .c = c.data,
          .c_stride = c.stride,
          .rows = c.rows,
          .depth = a.cols,
          .cols = c.cols,
          .write = write};
}
// The same with a transposed, c (+)= a^T b.
inline SmallGemm ProductOfTransposed(ConstMatrix a, ConstMatrix b, Matrix c,
                                     Write write = Write::kOver) {
  SmallGemm product = ProductOf(a, b, c, write);
  product.a_row = 1;
  product.a_depth = a.stride;
  product.depth = a.rows;
  return product;
}

// to[c * to_stride + r] = from[r * stride + c]
HDPS_INLINE void TransposeRows(const float* from, size_t stride, size_t rows, size_t cols,
                               float* to, size_t to_stride) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) to[c * to_stride + r] = from[r * stride + c];
  }
}

// to[r * to_stride + c] = from[r * stride + c]
HDPS_INLINE void CopyRows(const float* from, size_t stride, size_t rows, size_t cols, float* to,
                          size_t to_stride) {
  for (size_t r = 0; r < rows; ++r) std::copy_n(from + r * stride, cols, to + r * to_stride);
}

// How examples are cut into bands, each a piece of work for one thread, and a band into blocks: by
// their number and size alone, never by the threads.
struct ExampleBands {
  // Floats of an example in the arrays of a block, which should stay in the second-level cache.
  ExampleBands(size_t n, size_t floats)
      : examples(n),
        block(std::max<size_t>(1, kBlockFloats / std::max<size_t>(1, floats))),
        count(std::clamp<size_t>((n + block - 1) / block, 1, kBandsMost)) {}

  // Calls body(first, count) for each block of a band.
  template <typename Body>
  void ForBlocks(size_t band, const Body& body) const {
    const size_t end = examples * (band + 1) / count;
    for (size_t i = examples * band / count; i < end; i += block) {
      body(i, std::min(block, end - i));
    }
  }

  static constexpr size_t kBandsMost = 16, kBlockFloats = 1 << 16;
  size_t examples, block, count;
};

// Adds the arrays of all bands [bands, floats] to the first, in their order.
inline void AddBands(float* arrays, size_t bands, size_t floats) {
  for (size_t band = 1; band < bands; ++band) {
    const float* const from = arrays + band * floats;
    for (size_t j = 0; j < floats; ++j) arrays[j] += from[j];
  }
}

}  // namespace hdps
