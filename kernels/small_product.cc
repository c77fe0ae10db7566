// One source for all vector widths: a block of sums stays in registers while k runs.
#include "kernels/small_product.h"

namespace hdps {
namespace {

#define HDPS_INLINE inline __attribute__((always_inline))

// Vectors of floats in memory: aligned like a float, and allowed to look at floats. A block has so
// many rows of two vectors: sums, both vectors of b and one factor fit the registers.
struct Bytes16 {
  using Vec = float __attribute__((vector_size(16), aligned(4), may_alias));
  static constexpr size_t kRows = 4;
};
struct Bytes32 {
  using Vec = float __attribute__((vector_size(32), aligned(4), may_alias));
  static constexpr size_t kRows = 4;
};
struct Bytes64 {
  using Vec = float __attribute__((vector_size(64), aligned(4), may_alias));
  static constexpr size_t kRows = 8;
};

template <typename Vec>
HDPS_INLINE Vec& At(float* p) {
  return *reinterpret_cast<Vec*>(p);
}
template <typename Vec>
HDPS_INLINE const Vec& At(const float* p) {
  return *reinterpret_cast<const Vec*>(p);
}

// c[kRows, kVecs vectors] (+)= a b.
template <typename Vec, size_t kRows, size_t kVecs>
HDPS_INLINE void Block(const SmallProduct& p, const float* a, const float* b, float* c) {
  constexpr size_t kWidth = sizeof(Vec) / sizeof(float);
  Vec sums[kRows][kVecs];
#pragma GCC unroll 8
  for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (size_t v = 0; v < kVecs; ++v) sums[i][v] = Vec{};
  }
  for (size_t k = 0; k < p.depth; ++k) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kRows; ++i) {
      const float factor = a[i * p.a_row];
#pragma GCC unroll 2
      for (size_t v = 0; v < kVecs; ++v) sums[i][v] += factor * At<Vec>(b + v * kWidth);
    }
    a += p.a_depth;
    b += p.b_stride;
  }
#pragma GCC unroll 8
  for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (size_t v = 0; v < kVecs; ++v) {
      Vec& to = At<Vec>(c + i * p.c_stride + v * kWidth);
      to = p.write == Write::kAdd ? to + sums[i][v] : sums[i][v];
    }
  }
}

// All rows of kVecs vectors of columns.
template <typename Bytes, size_t kVecs>
HDPS_INLINE void Columns(const SmallProduct& p, size_t col) {
  using Vec = typename Bytes::Vec;
  const float* const b = p.b + col;
  float* const c = p.c + col;
  size_t i = 0;
  for (; i + Bytes::kRows <= p.rows; i += Bytes::kRows) {
    Block<Vec, Bytes::kRows, kVecs>(p, p.a + i * p.a_row, b, c + i * p.c_stride);
  }
  for (; i + 2 <= p.rows; i += 2) {
    Block<Vec, 2, kVecs>(p, p.a + i * p.a_row, b, c + i * p.c_stride);
  }
  if (i < p.rows) Block<Vec, 1, kVecs>(p, p.a + i * p.a_row, b, c + i * p.c_stride);
}

template <typename Bytes>
HDPS_INLINE void Multiply(const SmallProduct& p) {
  constexpr size_t kWidth = sizeof(typename Bytes::Vec) / sizeof(float);
  size_t col = 0;
  for (; col + 2 * kWidth <= p.cols; col += 2 * kWidth) Columns<Bytes, 2>(p, col);
  if (col < p.cols) Columns<Bytes, 1>(p, col);
}

void MultiplyPlain(const SmallProduct& p) { Multiply<Bytes16>(p); }
#ifdef __x86_64__
__attribute__((target("avx2,fma"))) void MultiplyAvx2(const SmallProduct& p) {
  Multiply<Bytes32>(p);
}
__attribute__((target("avx512f,prefer-vector-width=512"))) void MultiplyAvx512(
    const SmallProduct& p) {
  Multiply<Bytes64>(p);
}
#endif

}  // namespace

SmallProductLoop PlainSmallProduct() { return MultiplyPlain; }

SmallProductLoop SmallProductOfThisMachine() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return MultiplyAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return MultiplyAvx2;
#endif
  return PlainSmallProduct();
}

}  // namespace hdps
