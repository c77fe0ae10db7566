// Defines E2, the tolerance between two ways to compute the same values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace hdps {

// Expects values within 1e-5 of the largest value of their kind, or of 1 if that is larger.
inline void ExpectE2(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  float largest = 1.0f;
  for (const float x : expected) largest = std::max(largest, std::fabs(x));
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], 1e-5f * largest) << i;
  }
}

}  // namespace hdps
