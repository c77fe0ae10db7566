// Interleaves pairs of rows, and transposes 16 x 16 pairs within the registers.
#include "kernels/products/tiled_operand.h"

#include <immintrin.h>

#include <algorithm>

#include "kernels/host/half_floats.h"
#include "kernels/vector_width.h"

// Intel's header triggers this warning with intrinsics whose result is undefined (GCC bug 105593).
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace hdps {
namespace {

// ---- Plain loops, as the header describes.

void PlainRight(Bf16Matrix b, size_t block, TiledOperand to, float* sums) {
  for (size_t j = 0; j < kBlockSide; ++j) {
    const size_t col = block * kBlockSide + j;
    float sum = 0;
    for (size_t k = 0; k < to.depth_blocks * kTileDepth; ++k) {
      const uint16_t value = k < b.rows && col < b.cols ? b.Row(k)[col] : 0;
      uint16_t* const tile = to.Block(block, k / kTileDepth) + j / kTileSide * kTileNumbers;
      tile[k % kTileDepth / 2 * kTileDepth + j % kTileSide * 2 + k % 2] = value;
      if (k < b.rows) sum += FromBf16(value);
    }
    if (sums != nullptr) sums[j] = sum;
  }
}

void PlainRightOfTransposed(Bf16Matrix b, size_t block, TiledOperand to) {
  for (size_t j = 0; j < kBlockSide; ++j) {
    const size_t col = block * kBlockSide + j;
    for (size_t k = 0; k < to.depth_blocks * kTileDepth; ++k) {
      uint16_t* const tile = to.Block(block, k / kTileDepth) + j / kTileSide * kTileNumbers;
      tile[k % kTileDepth / 2 * kTileDepth + j % kTileSide * 2 + k % 2] =
          col < b.rows && k < b.cols ? b.Row(col)[k] : 0;
    }
  }
}

void PlainLeftOfTransposed(Bf16Matrix a, size_t block, TiledOperand to) {
  for (size_t i = 0; i < kBlockSide; ++i) {
    const size_t row = block * kBlockSide + i;
    for (size_t k = 0; k < to.depth_blocks * kTileDepth; ++k) {
      uint16_t* const tile = to.Block(block, k / kTileDepth) + i / kTileSide * kTileNumbers;
      tile[i % kTileSide * kTileDepth + k % kTileDepth] =
          k < a.rows && row < a.cols ? a.Row(k)[row] : 0;
    }
  }
}

// ---- With AVX-512.

// Returns 32 numbers of a row from `col` on, zero beyond the matrix.
HDPS_AVX512 HDPS_INLINE __m512i LoadRow(Bf16Matrix from, size_t row, size_t col) {
  if (row >= from.rows) return _mm512_setzero_si512();
  const size_t count = from.cols - col;
  const __mmask32 some = count >= 32 ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
  return _mm512_maskz_loadu_epi16(some, from.Row(row) + col);
}

HDPS_AVX512 HDPS_INLINE void StoreTile(const __m512i (&rows)[kTileSide], uint16_t* tile) {
#pragma GCC unroll 16
  for (size_t i = 0; i < kTileSide; ++i) _mm512_store_si512(tile + i * kTileDepth, rows[i]);
}

// Transposes 16 x 16 numbers of 32 bits.
HDPS_AVX512 HDPS_INLINE void Transpose(__m512i (&r)[kTileSide]) {
  __m512i t[kTileSide];
#pragma GCC unroll 8
  for (size_t i = 0; i < kTileSide; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (size_t i = 0; i < kTileSide; i += 4) {  // r[i + c]: columns c, c + 4, c + 8, c + 12.
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (size_t c = 0; c < 4; ++c) {
    const __m512i even_low = _mm512_shuffle_i32x4(r[c], r[c + 4], 0x88);
    const __m512i odd_low = _mm512_shuffle_i32x4(r[c], r[c + 4], 0xdd);
    const __m512i even_high = _mm512_shuffle_i32x4(r[c + 8], r[c + 12], 0x88);
    const __m512i odd_high = _mm512_shuffle_i32x4(r[c + 8], r[c + 12], 0xdd);
    t[c] = _mm512_shuffle_i32x4(even_low, even_high, 0x88);
    t[c + 4] = _mm512_shuffle_i32x4(odd_low, odd_high, 0x88);
    t[c + 8] = _mm512_shuffle_i32x4(even_low, even_high, 0xdd);
    t[c + 12] = _mm512_shuffle_i32x4(odd_low, odd_high, 0xdd);
  }
#pragma GCC unroll 16
  for (size_t i = 0; i < kTileSide; ++i) r[i] = t[i];
}

// Interleaves 32 rows and 32 columns from `first_row` and `first_col` on: row i gets numbers 2i and
// 2i + 1 of each column side by side; `low` has the first 16 columns, `high` the others.
HDPS_AVX512 HDPS_INLINE void Interleave(Bf16Matrix from, size_t first_row, size_t first_col,
                                        __m512i (&low)[kTileSide], __m512i (&high)[kTileSide],
                                        __m512 (&sums)[2]) {
  alignas(64) static constexpr uint16_t kLow[32] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                                    37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                                    11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i pick_low = _mm512_load_si512(kLow);
  const __m512i pick_high = _mm512_add_epi16(pick_low, _mm512_set1_epi16(16));
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
#pragma GCC unroll 4
  for (size_t i = 0; i < kTileSide; ++i) {
    const size_t r = first_row + 2 * i;
    const __m512i a = LoadRow(from, r, first_col), b = LoadRow(from, r + 1, first_col);
    low[i] = _mm512_permutex2var_epi16(a, pick_low, b);
    high[i] = _mm512_permutex2var_epi16(a, pick_high, b);
    // A bf16 number is the upper half of an fp32 number.
    sums[0] = _mm512_add_ps(sums[0], _mm512_castsi512_ps(_mm512_slli_epi32(low[i], 16)));
    sums[1] = _mm512_add_ps(sums[1], _mm512_castsi512_ps(_mm512_slli_epi32(high[i], 16)));
    sums[0] = _mm512_add_ps(sums[0], _mm512_castsi512_ps(_mm512_and_si512(low[i], upper)));
    sums[1] = _mm512_add_ps(sums[1], _mm512_castsi512_ps(_mm512_and_si512(high[i], upper)));
  }
}

HDPS_AVX512 void Avx512Right(Bf16Matrix b, size_t block, TiledOperand to, float* sums) {
  __m512 columns[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
  for (size_t d = 0; d < to.depth_blocks; ++d) {
    __m512i low[kTileSide], high[kTileSide];
    Interleave(b, d * kTileDepth, block * kBlockSide, low, high, columns);
    StoreTile(low, to.Block(block, d));
    StoreTile(high, to.Block(block, d) + kTileNumbers);
  }
  if (sums == nullptr) return;
  _mm512_storeu_ps(sums, columns[0]);
  _mm512_storeu_ps(sums + kTileSide, columns[1]);
}

HDPS_AVX512 void Avx512LeftOfTransposed(Bf16Matrix a, size_t block, TiledOperand to) {
  __m512 sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
  for (size_t d = 0; d < to.depth_blocks; ++d) {
    __m512i low[kTileSide], high[kTileSide];
    Interleave(a, d * kTileDepth, block * kBlockSide, low, high, sums);
    Transpose(low);
    StoreTile(low, to.Block(block, d));
    Transpose(high);
    StoreTile(high, to.Block(block, d) + kTileNumbers);
  }
}

HDPS_AVX512 void Avx512RightOfTransposed(Bf16Matrix b, size_t block, TiledOperand to) {
  for (size_t d = 0; d < to.depth_blocks; ++d) {
    const size_t first = d * kTileDepth;
    for (size_t half = 0; half < 2; ++half) {
      const size_t row = block * kBlockSide + half * kTileSide;
      __m512i pairs[kTileSide];
#pragma GCC unroll 4
      for (size_t i = 0; i < kTileSide; ++i) {
        pairs[i] = LoadRow(b, row + i, first);
      }
      Transpose(pairs);
      StoreTile(pairs, to.Block(block, d) + half * kTileNumbers);
    }
  }
}

}  // namespace

TileLoops PlainTileLoops() { return {PlainRight, PlainRightOfTransposed, PlainLeftOfTransposed}; }
TileLoops Avx512TileLoops() {
  return {Avx512Right, Avx512RightOfTransposed, Avx512LeftOfTransposed};
}

}  // namespace hdps
