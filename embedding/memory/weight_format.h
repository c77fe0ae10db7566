// Weights in 16 bits: conversion to 32 bits, and rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/hash.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "kernels/host/half_floats.h"
#include "kernels/vector_width.h"

namespace hdps {

// Returns the bytes of the weights in a row: a multiple of four, so that the state behind them is
// aligned.
constexpr size_t WeightBytes(WeightFormat format, size_t dim) {
  return format == WeightFormat::kFp32 ? dim * sizeof(float) : (dim + 1) / 2 * sizeof(float);
}

// Returns 32 random bits for element i of a row, from the seed of the row's update.
HDPS_INLINE uint32_t RoundingBits(uint64_t row_seed, uint32_t i) {
  uint32_t x = static_cast<uint32_t>(row_seed) + i * 0x9e3779b9u;
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}
// The seed of a row's update comes from the job's seed, the table, the key and the step.
inline uint64_t RoundingSeed(uint64_t seed, TableId table) {
  constexpr uint64_t kSalt = 0x2545f4914f6cdd1du;
  return RandomAt(seed ^ kSalt, table.value);
}
HDPS_INLINE uint64_t RowRoundingSeed(uint64_t table_seed, Key key, int64_t step) {
  return MixBits(MixBits(table_seed ^ key) + static_cast<uint64_t>(step) * 0x9e3779b97f4a7c15u);
}

// ---- The weights of a row.

// Sets out[i] to weight i as a float.
template <WeightFormat kFormat>
HDPS_INLINE void LoadWeights(const std::byte* row, size_t count, float* __restrict out) {
  const auto* weights = reinterpret_cast<const uint16_t*>(row);
  for (size_t i = 0; i < count; ++i) {
    out[i] = kFormat == WeightFormat::kFp16 ? FromFp16(weights[i]) : FromBf16(weights[i]);
  }
}
// Rounds at random, by the bits of `row_seed`, and writes the row.
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

// Converts the weights of a row in a format known at run time, rounding to the nearest.
// weights.size() may be below dim.
void ReadWeights(WeightFormat format, const std::byte* row, std::span<float> weights);
void WriteWeights(WeightFormat format, std::span<const float> weights, std::byte* row);
// Rounds weights to what they read as once they were written.
void RoundToNearest(WeightFormat format, std::span<float> weights);

}  // namespace hdps
