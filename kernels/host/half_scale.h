// Powers of two by which gradients are multiplied while they travel as fp16, whose numbers lie
// between 2^-24 and 65504: Micikevicius et al. 2018, "Mixed Precision Training", section 3.2.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

namespace hdps {

// Largest magnitude that scaled values, or their sum, are given: half of fp16's range, so that
// rounding the summands cannot take their sum beyond it.
inline constexpr double kScaledMax = 0x1p15;
// A scale chosen from the values is at most 2^24: it makes the smallest fp16 number 2^-48.
inline constexpr int kDynamicExponentMax = 24;

// Returns the largest magnitude; 0 for no values, and a value that is not finite if one is not.
inline float LargestMagnitude(std::span<const float> values) {
  uint32_t largest = 0;  // Magnitudes are ordered as their bits are.
  for (const float value : values) {
    largest = std::max(largest, std::bit_cast<uint32_t>(value) & 0x7fffffffu);
  }
  return std::bit_cast<float>(largest);
}

// Returns the exponent e of the scale 2^e for values of at most `largest`, of which `summands` are
// added. `loss_scale` is a power of two, or 0 for the largest possible one; the result is lower if
// the sum would leave fp16's range, so nothing becomes infinite and no step is lost. It is a
// function of the values alone, so it needs no history that a checkpoint would have to keep. It is
// 0 for a loss scale of 1, under which values are cut off at 65504, and if `largest` is not finite.
inline int ScaleExponent(float largest, double loss_scale, uint32_t summands) {
  if (loss_scale == 1 || !std::isfinite(largest)) return 0;
  int exponent = loss_scale == 0 ? kDynamicExponentMax : std::ilogb(loss_scale);
  const double sum = static_cast<double>(largest) * summands;
  if (sum > 0) exponent = std::min(exponent, std::ilogb(kScaledMax) - std::ilogb(sum) - 1);
  return std::max(exponent, -126);  // Both the scale and its inverse are normal numbers.
}

}  // namespace hdps
