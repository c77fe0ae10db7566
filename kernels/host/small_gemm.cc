// One source for all vector widths: a block of sums stays in registers while k runs.
#include "kernels/host/small_gemm.h"

namespace hdps {
namespace {

#define HDPS_INLINE inline __attribute__((always_inline))

// Vectors of floats in memory: aligned like a float, and allowed to look at floats. A block has so
// many vectors of sums: they, the vectors of b and one factor fit the registers.
struct Bytes16 {
  using Vec = float __attribute__((vector_size(16), aligned(4), may_alias));
  static constexpr size_t kSums = 8;
};
struct Bytes32 {
  using Vec = float __attribute__((vector_size(32), aligned(4), may_alias));
  static constexpr size_t kSums = 8;
};
struct Bytes64 {
  using Vec = float __attribute__((vector_size(64), aligned(4), may_alias));
  static constexpr size_t kSums = 16;
};
// A distance between rows of a that is only known at run time.
constexpr size_t kAnyRow = 0;

template <typename Vec>
HDPS_INLINE Vec& At(float* p) {
  return *reinterpret_cast<Vec*>(p);
}
template <typename Vec>
HDPS_INLINE const Vec& At(const float* p) {
  return *reinterpret_cast<const Vec*>(p);
}

// c[kRows, kVecs vectors] (+)= a b, with kRowOfA floats from row to row of a.
template <typename Vec, size_t kRows, size_t kVecs, size_t kRowOfA>
HDPS_INLINE void Block(const SmallGemm& p, const float* a, const float* b, float* c) {
  constexpr size_t kWidth = sizeof(Vec) / sizeof(float);
  const size_t a_row = kRowOfA == kAnyRow ? p.a_row : kRowOfA;
  Vec sums[kRows][kVecs];
#pragma GCC unroll 16
  for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (size_t v = 0; v < kVecs; ++v) sums[i][v] = Vec{};
  }
#pragma GCC unroll 4
  for (size_t k = 0; k < p.depth; ++k) {
#pragma GCC unroll 16
    for (size_t i = 0; i < kRows; ++i) {
      const float factor = a[i * a_row];
#pragma GCC unroll 2
      for (size_t v = 0; v < kVecs; ++v) sums[i][v] += factor * At<Vec>(b + v * kWidth);
    }
    a += p.a_depth;
    b += p.b_stride;
  }
#pragma GCC unroll 16
  for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (size_t v = 0; v < kVecs; ++v) {
      Vec& to = At<Vec>(c + i * p.c_stride + v * kWidth);
      to = p.write == Write::kAdd ? to + sums[i][v] : sums[i][v];
    }
  }
}

// All rows of kVecs vectors of columns.
template <typename Bytes, size_t kVecs, size_t kRowOfA>
HDPS_INLINE void Columns(const SmallGemm& p, size_t col) {
  using Vec = typename Bytes::Vec;
  constexpr size_t kRows = Bytes::kSums / kVecs;
  const float* const b = p.b + col;
  float* const c = p.c + col;
  size_t i = 0;
  for (; i + kRows <= p.rows; i += kRows) {
    Block<Vec, kRows, kVecs, kRowOfA>(p, p.a + i * p.a_row, b, c + i * p.c_stride);
  }
  for (; i + 2 <= p.rows; i += 2) {
    Block<Vec, 2, kVecs, kRowOfA>(p, p.a + i * p.a_row, b, c + i * p.c_stride);
  }
  if (i < p.rows) Block<Vec, 1, kVecs, kRowOfA>(p, p.a + i * p.a_row, b, c + i * p.c_stride);
}

template <typename Bytes>
HDPS_INLINE void Multiply(const SmallGemm& p) {
  constexpr size_t kWidth = sizeof(typename Bytes::Vec) / sizeof(float);
  size_t col = 0;
  for (; col + 2 * kWidth <= p.cols; col += 2 * kWidth) Columns<Bytes, 2, kAnyRow>(p, col);
  if (col == p.cols) return;
  // One vector of b serves each factor once: nothing else must be loaded beside it, not even where
  // it stands.
  if (p.a_row == kSmallProductTile) {
    Columns<Bytes, 1, kSmallProductTile>(p, col);
  } else {
    Columns<Bytes, 1, kAnyRow>(p, col);
  }
}

void MultiplyPlain(const SmallGemm& p) { Multiply<Bytes16>(p); }
#ifdef __x86_64__
__attribute__((target("avx2,fma"))) void MultiplyAvx2(const SmallGemm& p) { Multiply<Bytes32>(p); }
__attribute__((target("avx512f,prefer-vector-width=512"))) void MultiplyAvx512(const SmallGemm& p) {
  Multiply<Bytes64>(p);
}
#endif

}  // namespace

SmallGemmLoop PlainSmallProduct() { return MultiplyPlain; }

SmallGemmLoop SmallGemmOfThisMachine() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return MultiplyAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return MultiplyAvx2;
#endif
  return PlainSmallProduct();
}

}  // namespace hdps
