// Emulates CUDA's header of this name: see ../README.md.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

struct __half {
  uint16_t bits;
};
inline __half __ushort_as_half(uint16_t bits) { return {bits}; }
inline uint16_t __half_as_ushort(__half half) { return half.bits; }

inline float __half2float(__half half) {
  const uint32_t magnitude = half.bits & 0x7fffu;
  float value;
  if (magnitude >= 0x7c00u) {
    value = std::bit_cast<float>(0x7f800000u | (magnitude & 0x3ffu) << 13);
  } else if (magnitude >= 0x400u) {
    value = std::bit_cast<float>((magnitude << 13) + (112u << 23));
  } else {
    value = std::ldexp(static_cast<float>(magnitude), -24);
  }
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | uint32_t{half.bits & 0x8000u} << 16);
}
// Rounds to nearest, ties to even. Requires: x is finite and not negative.
inline __half __float2half_rn(float x) {
  int exponent = 0;
  if (x != 0) std::frexp(x, &exponent);
  // The last bit of the half is worth 2^(exponent - 11), at least 2^-24.
  const int last = std::max(exponent - 11, -24);
  const float units = std::nearbyint(std::ldexp(x, -last));
  const float rounded = std::ldexp(units, last);
  if (rounded >= 65536.0f) return {0x7c00};
  if (rounded < 0x1p-14f) return {static_cast<uint16_t>(std::ldexp(rounded, 24))};
  const auto bits = std::bit_cast<uint32_t>(rounded);
  return {static_cast<uint16_t>((bits >> 13) - (112u << 10))};
}
