// Tests the choice of the scale of gradients in fp16.
#include "kernels/host/half_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/host/half_floats.h"

namespace hdps {
namespace {

TEST(HalfScale, TheLargestMagnitudeIsFoundWithItsSignAndWithoutANumber) {
  EXPECT_EQ(LargestMagnitude({}), 0);
  EXPECT_EQ(LargestMagnitude(std::vector<float>{1, -3, 2, -0.0f}), 3);
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(LargestMagnitude(std::vector<float>{1, -inf}), inf);
  EXPECT_TRUE(std::isnan(LargestMagnitude(std::vector<float>{inf, -std::nanf(""), 1})));
}

// The scaled sum stays in fp16's range, and with one exponent more it might not.
TEST(HalfScale, IsTheLargestAtWhichTheSumFits) {
  for (const uint32_t summands : {1u, 2u, 3u, 1000u}) {
    for (int power = -149; power < 128; ++power) {
      const float largest = std::ldexp(1.0f, power) * (power > -120 ? 1.75f : 1.0f);
      const double sum = double{largest} * summands;
      const int exponent = ScaleExponent(largest, 0, summands);
      EXPECT_LT(std::ldexp(sum, exponent), kScaledMax);
      if (exponent < kDynamicExponentMax && exponent > -126) {
        EXPECT_GE(std::ldexp(sum, exponent), kScaledMax / 2);
      }
      const int fixed = ScaleExponent(largest, 1024, summands);
      EXPECT_EQ(fixed, std::min(10, exponent));
      EXPECT_EQ(ScaleExponent(largest, 1, summands), 0);
    }
  }
  EXPECT_EQ(ScaleExponent(0, 0, 8), kDynamicExponentMax);
  EXPECT_EQ(ScaleExponent(0, 2, 8), 1);
  EXPECT_EQ(ScaleExponent(std::numeric_limits<float>::infinity(), 0, 1), 0);
}

// Both ways together change a number by no more than fp16's rounding, at any magnitude; without a
// scale small numbers vanish.
TEST(HalfScale, KeepsElevenBitsOfSmallNumbers) {
  for (int power = -38; power < 40; ++power) {
    const float value = std::ldexp(1.2345f, power);
    const int exponent = ScaleExponent(value, 0, 1);
    const float back = std::ldexp(WidenFp16(NarrowToFp16(std::ldexp(value, exponent))), -exponent);
    EXPECT_LE(std::abs(back - value), std::ldexp(value, -11)) << power;
  }
  EXPECT_EQ(WidenFp16(NarrowToFp16(std::ldexp(1.0f, -26))), 0);
}

}  // namespace
}  // namespace hdps
