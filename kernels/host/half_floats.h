// Numbers in 16 bits: widening to 32 bits, rounding, and conversion of many at once.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/dtype.h"
#include "kernels/vector_width.h"

namespace hdps {

// ---- Single finite numbers.
//
// Loops over these functions are vectorized, with the same bits at every width. Numbers that are
// too large become the largest one.

HDPS_INLINE float FromFp16(uint16_t half) {
  // The exponent's bias differs by 112; a product corrects it for small numbers too.
  const auto bits = static_cast<uint32_t>(half);
  const float magnitude = std::bit_cast<float>((bits & 0x7fffu) << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | (bits & 0x8000u) << 16);
}
HDPS_INLINE float FromBf16(uint16_t half) {
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

inline constexpr uint32_t kFp16Max = 0x7bff, kBf16Max = 0x7f7f;

// Rounding mode of CutOff: it adds `up` to the bits that are cut off, 13 for fp16 and 16 for bf16.
// Random bits round up with a probability in proportion to the distance from the lower number;
// kNearest rounds to nearest, ties to even.
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
  // Below 2^-14 all steps are 2^-24, so this cuts off an integer count of 2^-37.
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

// ---- Any number, rounded to nearest, ties to even.
//
// Numbers that are too large become the largest one; infinities and NaN stay so.

HDPS_INLINE uint16_t NarrowToFp16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  constexpr uint32_t kNormalMin = (127 - 14) << 23;
  const uint32_t normal = CutOff(magnitude, 13, kNearest) - ((127u - 15) << 10);
  // Between 0.5 and 1 floats are 2^-24 apart, like fp16 numbers below 2^-14, so the sum rounds
  // alike.
  const float small = std::bit_cast<float>(magnitude < kNormalMin ? magnitude : 0) + 0.5f;
  const uint32_t count = std::bit_cast<uint32_t>(small) - std::bit_cast<uint32_t>(0.5f);
  const uint32_t finite = std::min(magnitude < kNormalMin ? count : normal, kFp16Max);
  const uint32_t not_finite = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t rounded = magnitude < 0x7f800000u ? finite : not_finite;
  return static_cast<uint16_t>(rounded | (bits >> 16 & 0x8000u));
}
HDPS_INLINE uint16_t NarrowToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t not_finite = magnitude > 0x7f800000u ? 0x7fc0u : 0x7f80u;
  const uint32_t rounded = magnitude < 0x7f800000u ? ToBf16(value, kNearest) & 0x7fffu : not_finite;
  return static_cast<uint16_t>(rounded | (bits >> 16 & 0x8000u));
}
HDPS_INLINE float WidenFp16(uint16_t half) {
  const auto bits = static_cast<uint32_t>(half);
  const uint32_t not_finite = 0x7f800000u | (bits & 0x3ffu) << 13 | (bits & 0x8000u) << 16;
  const uint32_t finite = std::bit_cast<uint32_t>(FromFp16(half));
  return std::bit_cast<float>((bits & 0x7c00u) == 0x7c00u ? not_finite : finite);
}

// Sets to[i] = from[i] * scale for contiguous numbers; kFormat is kFp16 or kBf16.
template <DType kFormat>
HDPS_INLINE void NarrowEach(const float* __restrict from, size_t count, uint16_t* __restrict to,
                            float scale = 1) {
  for (size_t i = 0; i < count; ++i) {
    to[i] = kFormat == DType::kFp16 ? NarrowToFp16(from[i] * scale) : NarrowToBf16(from[i] * scale);
  }
}
template <DType kFormat>
HDPS_INLINE void WidenEach(const uint16_t* __restrict from, size_t count, float* __restrict to) {
  for (size_t i = 0; i < count; ++i) {
    to[i] = kFormat == DType::kFp16 ? WidenFp16(from[i]) : FromBf16(from[i]);
  }
}

// ---- Many numbers in a format known at run time. The width changes no bit. `to` and `from` as
// bytes are aligned to the numbers that they hold.

void NarrowFloats(VectorWidth width, DType format, std::span<const float> from, std::byte* to);
void WidenFloats(VectorWidth width, DType format, const std::byte* from, std::span<float> to);
// Returns the position of the first of `count` numbers that is infinite or NaN, or `count`.
size_t FirstNotFinite(DType format, const std::byte* values, size_t count);

}  // namespace hdps
