// Tests that the first value that is not finite is found at any place, and no other.
#include "kernels/host/finite.h"

#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace hdps {
namespace {

TEST(Finite, FindsTheFirstOfEveryKindAtEveryPlace) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const float bad[] = {kInfinite, -kInfinite, std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> values(9000, 0.5f);
  for (const size_t at : {0u, 1u, 15u, 17u, 4095u, 4096u, 8191u, 8999u}) {
    for (const float value : bad) {
      std::vector<float> copy = values;
      copy[at] = value;
      copy.back() = at + 1 < copy.size() ? kInfinite : value;
      EXPECT_EQ(FirstNotFinite(copy), at);
    }
  }
}

TEST(Finite, TheLargestAndTheSmallestAreNumbers) {
  const float limits[] = {std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest(),
                          std::numeric_limits<float>::denorm_min(), -0.0f};
  EXPECT_EQ(FirstNotFinite(limits), 4u);
  EXPECT_EQ(FirstNotFinite({}), 0u);
}

}  // namespace
}  // namespace hdps
