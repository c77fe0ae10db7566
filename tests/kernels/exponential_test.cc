// Tests the exponential function of loops against the library's in double, and its vectors against
// single floats.
#include "kernels/host/exponential.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace hdps {
namespace {

// Floats from the largest to the smallest argument with a normal result, a thousandth apart, and
// those next to the points where the power of two changes.
std::vector<float> Arguments() {
  std::vector<float> arguments;
  for (int i = -87300; i <= 88700; ++i) arguments.push_back(static_cast<float>(i) * 1e-3f);
  for (int k = -125; k <= 127; ++k) {
    const float middle = (static_cast<float>(k) + 0.5f) * 0.69314718f;
    arguments.insert(arguments.end(),
                     {std::nextafter(middle, -100.0f), middle, std::nextafter(middle, 100.0f)});
  }
  return arguments;
}

TEST(ExponentialTest, IsTwoUnitsInTheLastPlaceAwayAtMost) {
  for (const float x : Arguments()) {
    const double wanted = std::exp(double{x});
    const double unit = std::ldexp(1.0, std::ilogb(wanted) - 23);
    ASSERT_NEAR(double{ExpOf(x)}, wanted, 2 * unit) << x;
  }
  EXPECT_EQ(ExpOf(0.0f), 1.0f);
}

TEST(ExponentialTest, HasLimitsAndKeepsWhatIsNoNumber) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float x : {-87.5f, -1e30f, -kInfinity}) EXPECT_EQ(ExpOf(x), 0.0f) << x;
  for (const float x : {88.8f, 1e30f, kInfinity}) EXPECT_EQ(ExpOf(x), kInfinity) << x;
  EXPECT_TRUE(std::isnan(ExpOf(std::numeric_limits<float>::quiet_NaN())));
}

TEST(ExponentialTest, VectorsHaveTheBitsOfSingleFloats) {
  const std::vector<float> x = Arguments();
  std::vector<float> y(x.size());
  WithVectors(
      WidestVectors(), [&]() __attribute__((always_inline)) {
        for (size_t i = 0; i < x.size(); ++i) y[i] = ExpOf(x[i]);
      });
  for (size_t i = 0; i < x.size(); ++i) {
    volatile float one = x[i];  // Keeps the compiler from making a vector of it.
    ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(ExpOf(one))) << x[i];
  }
}

}  // namespace
}  // namespace hdps
