// One source for all vector widths: a block of sums stays in registers over the whole depth.
#include "kernels/products/small_gemm.h"

#include "kernels/vector_width.h"

namespace hdps {
namespace {

// Vectors of sums in a block: with the vectors of b and one factor they fit the registers.
template <VectorWidth kVectors>
constexpr size_t kSums = kVectors == VectorWidth::kAvx512 ? 16 : 8;

// For a distance between rows of a that is only known at run time.
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

// Computes all rows of kVecs vectors of columns.
template <VectorWidth kVectors, size_t kVecs, size_t kRowOfA>
HDPS_INLINE void Columns(const SmallGemm& p, size_t col) {
  using Vec = typename FloatsOf<kVectors>::Vec;
  constexpr size_t kRows = kSums<kVectors> / kVecs;
  const float* const b = p.b + col;
  float* const c = p.c + col;
  size_t i = 0;
  for (; i + kRows <= p.rows; i += kRows) {
    Block<Vec, kRows, kVecs, kRowOfA>(p, p.a + i * p.a_row, b, c + i * p.c_stride);
  }
  for (; i + kRows / 2 <= p.rows; i += kRows / 2) {
    Block<Vec, kRows / 2, kVecs, kRowOfA>(p, p.a + i * p.a_row, b, c + i * p.c_stride);
  }
  for (; i + 2 <= p.rows; i += 2) {
    Block<Vec, 2, kVecs, kRowOfA>(p, p.a + i * p.a_row, b, c + i * p.c_stride);
  }
  if (i < p.rows) Block<Vec, 1, kVecs, kRowOfA>(p, p.a + i * p.a_row, b, c + i * p.c_stride);
}

template <VectorWidth kVectors>
HDPS_INLINE void Multiply(const SmallGemm& p) {
  constexpr size_t kWidth = sizeof(typename FloatsOf<kVectors>::Vec) / sizeof(float);
  size_t col = 0;
  for (; col + 2 * kWidth <= p.cols; col += 2 * kWidth) Columns<kVectors, 2, kAnyRow>(p, col);
  if (col == p.cols) return;
  // Each vector of b serves each factor once, so nothing else should be loaded meanwhile, not even
  // a row distance.
  if (p.a_row == kSmallProductTile) {
    Columns<kVectors, 1, kSmallProductTile>(p, col);
  } else {
    Columns<kVectors, 1, kAnyRow>(p, col);
  }
}

void MultiplyPlain(const SmallGemm& p) { Multiply<VectorWidth::kPlain>(p); }
HDPS_AVX2 void MultiplyAvx2(const SmallGemm& p) { Multiply<VectorWidth::kAvx2>(p); }
HDPS_AVX512 void MultiplyAvx512(const SmallGemm& p) { Multiply<VectorWidth::kAvx512>(p); }

}  // namespace

SmallGemmLoop PlainSmallProduct() { return MultiplyPlain; }

SmallGemmLoop SmallGemmOfThisMachine() {
  switch (WidestVectors()) {
    case VectorWidth::kAvx512:
      return MultiplyAvx512;
    case VectorWidth::kAvx2:
      return MultiplyAvx2;
    case VectorWidth::kPlain:
      break;
  }
  return PlainSmallProduct();
}

}  // namespace hdps
