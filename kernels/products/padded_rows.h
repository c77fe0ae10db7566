// Lays out rows for small products, and cuts examples, for layers that are computed in blocks of
// examples.
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

// Transposes a square of four rows and columns.
HDPS_INLINE void TransposeSquare(const float* from, size_t stride, float* to, size_t to_stride) {
  using Four = FloatsOf<VectorWidth::kPlain>::Vec;
  const auto row = [&](size_t r) { return *reinterpret_cast<const Four*>(from + r * stride); };
  const Four a = row(0), b = row(1), c = row(2), d = row(3);
  const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const auto put = [&](size_t column, Four value) {
    *reinterpret_cast<Four*>(to + column * to_stride) = value;
  };
  put(0, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  put(1, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  put(2, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  put(3, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

// to[c * to_stride + r] = from[r * stride + c]
inline void TransposeRows(const float* from, size_t stride, size_t rows, size_t cols, float* to,
                          size_t to_stride) {
  constexpr size_t kSide = 4;
  const size_t whole_rows = rows / kSide * kSide, whole_cols = cols / kSide * kSide;
  for (size_t r = 0; r < whole_rows; r += kSide) {
    for (size_t c = 0; c < whole_cols; c += kSide) {
      TransposeSquare(from + r * stride + c, stride, to + c * to_stride + r, to_stride);
    }
  }
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = r < whole_rows ? whole_cols : 0; c < cols; ++c) {
      to[c * to_stride + r] = from[r * stride + c];
    }
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
