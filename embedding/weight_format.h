// Weights in 16 bits: what they are in 32, and how they are rounded.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/hash.h"
#include "common/job.h"
#include "common/random.h"
#include "kernels/vector_width.h"

namespace hdps {

// Of the weights in a row; a multiple of four, so that the state behind them is aligned.
constexpr size_t WeightBytes(WeightFormat format, size_t dim) {
  return format == WeightFormat::kFp32 ? dim * sizeof(float) : (dim + 1) / 2 * sizeof(float);
}

// ---- One weight. Loops over these become vectors, with the same bits at every width; no weight is
// infinite or no number, for what is too large becomes the largest.

HDPS_INLINE float FromFp16(uint16_t half) {
  // The exponent's bias is other by 112; a product puts that right for small numbers too.
  const auto bits = static_cast<uint32_t>(half);
  const float magnitude = std::bit_cast<float>((bits & 0x7fffu) << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | (bits & 0x8000u) << 16);
}
HDPS_INLINE float FromBf16(uint16_t half) {
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

inline constexpr uint32_t kFp16Max = 0x7bff, kBf16Max = 0x7f7f;

// What becomes of a weight between two numbers of the format: `up` is added to the bits that are
// cut off, 13 of fp16, 16 of bf16. Random bits round up as often as the weight is near the upper
// one; kNearest: to the nearest, of two as near to the even one.
inline constexpr uint32_t kNearest = ~0u;

HDPS_INLINE uint32_t CutOff(uint32_t bits, int cut, uint32_t up) {
  const uint32_t half = (1u << (cut - 1)) - 1 + ((bits >> cut) & 1);
  return (bits + (up == kNearest ? half : up)) >> cut;
}
HDPS_INLINE uint16_t ToFp16(float value, uint32_t up) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  constexpr uint32_t kNormalMin = (127 - 14) << 23;
  const uint32_t normal = CutOff(magnitude, 13, up) - ((127u - 15) << 10);
  // Below 2^-14 the steps are all 2^-24: cut off a number that counts 2^-37.
  const uint32_t small_bits = magnitude < kNormalMin ? magnitude : 0;
  const auto count = static_cast<int32_t>(std::bit_cast<float>(small_bits) * 0x1p37f);
  const uint32_t small = CutOff(static_cast<uint32_t>(count), 13, up);
  const uint32_t rounded = magnitude < kNormalMin ? small : normal;
  return static_cast<uint16_t>(std::min(rounded, kFp16Max) | (bits >> 16 & 0x8000u));
}
HDPS_INLINE uint16_t ToBf16(float value, uint32_t up) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = CutOff(bits & 0x7fffffffu, 16, up);
  return static_cast<uint16_t>(std::min(rounded, kBf16Max) | (bits >> 16 & 0x8000u));
}

// 32 random bits of element i of a row, from the seed of the row's update.
HDPS_INLINE uint32_t RoundingBits(uint64_t row_seed, uint32_t i) {
  uint32_t x = static_cast<uint32_t>(row_seed) + i * 0x9e3779b9u;
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}
// What the seed of a row's update comes from: the job's seed, the table, the key, the step.
inline uint64_t RoundingSeed(uint64_t seed, TableId table) {
  constexpr uint64_t kSalt = 0x2545f4914f6cdd1du;
  return RandomAt(seed ^ kSalt, table.value);
}
HDPS_INLINE uint64_t RowRoundingSeed(uint64_t table_seed, Key key, int64_t step) {
  return MixBits(MixBits(table_seed ^ key) + static_cast<uint64_t>(step) * 0x9e3779b97f4a7c15u);
}

// ---- The weights of a row

// out[i] = weight i as a float.
template <WeightFormat kFormat>
HDPS_INLINE void LoadWeights(const std::byte* row, size_t count, float* __restrict out) {
  const auto* weights = reinterpret_cast<const uint16_t*>(row);
  for (size_t i = 0; i < count; ++i) {
    out[i] = kFormat == WeightFormat::kFp16 ? FromFp16(weights[i]) : FromBf16(weights[i]);
  }
}
// Rounded by the bits of `row_seed`.
template <WeightFormat kFormat>
HDPS_INLINE void RoundWeights(const float* __restrict from, size_t count, uint64_t row_seed,
                              std::byte* row) {
  auto* weights = reinterpret_cast<uint16_t*>(row);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t random = RoundingBits(row_seed, static_cast<uint32_t>(i));
    weights[i] = kFormat == WeightFormat::kFp16 ? ToFp16(from[i], random >> 19)
                                                : ToBf16(from[i], random >> 16);
  }
}

// The same for a format known when it runs; rounded to the nearest. weights.size() may be below
// dim.
void ReadWeights(WeightFormat format, const std::byte* row, std::span<float> weights);
void WriteWeights(WeightFormat format, std::span<const float> weights, std::byte* row);
// What they read as once they were written.
void RoundToNearest(WeightFormat format, std::span<float> weights);

}  // namespace hdps
