// The exponential function for loops over many floats: the same bits at every vector width.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/vector_width.h"

namespace hdps {

// Returns e^x, at most 2 units in the last place away; 0 below -87.3, infinity above 88.7. It calls
// no library and has no branch, so that compilers make a loop over it into vectors.
HDPS_INLINE float ExpOf(float x) {
  // x = k ln 2 + r with a whole k and |r| <= ln 2 / 2, so e^x = 2^k e^r. ln 2 is cut in two so that
  // k times its first part is exact.
  constexpr float kLeast = -87.33654f, kMost = 88.8f;
  constexpr float kLog2OfE = 1.44269504f, kLn2 = 0.693359375f, kLn2Rest = -2.12194440e-4f;
  // A float of this size has no fraction, and its last bits are those of the whole number.
  constexpr float kWhole = 12582912.0f;
  const float bounded = x < kLeast ? kLeast : x > kMost ? kMost : x;
  const float shifted = bounded * kLog2OfE + kWhole;
  const float k = shifted - kWhole;
  const float r = bounded - k * kLn2 - k * kLn2Rest;
  // Minimax polynomial of (e^r - 1 - r) / r^2 (Cephes, expf).
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float of_rest = p * (r * r) + r + 1.0f;
  // 2^k in two factors, since 2^128 is none.
  uint32_t bits = 0;
  std::memcpy(&bits, &shifted, sizeof(bits));
  constexpr uint32_t kBias = 127, kMantissaBits = 23, kWholeBits = 0x4B400000u;
  const auto whole = static_cast<int32_t>(bits - kWholeBits);
  const int32_t half = whole >> 1;
  const uint32_t first_bits = static_cast<uint32_t>(half + static_cast<int32_t>(kBias))
                              << kMantissaBits;
  const uint32_t second_bits = static_cast<uint32_t>(whole - half + static_cast<int32_t>(kBias))
                               << kMantissaBits;
  float first = 0.0f, second = 0.0f;
  std::memcpy(&first, &first_bits, sizeof(first));
  std::memcpy(&second, &second_bits, sizeof(second));
  const float value = of_rest * first * second;
  return x < kLeast ? 0.0f : value;
}

}  // namespace hdps
