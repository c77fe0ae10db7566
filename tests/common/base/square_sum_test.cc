// Tests that sums of squares are correct and the same in any order.
#include "common/base/square_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/platform/random.h"

namespace hdps {
namespace {

TEST(SquareSumTest, OrderAndGroupsChangeNothing) {
  Random random(7);
  std::vector<double> values;
  for (int i = 0; i < 4000; ++i) {
    values.push_back(std::ldexp(random.Unit(), static_cast<int>(random.Below(160)) - 90));
  }
  SquareSum forward, backward, grouped;
  for (const double value : values) forward.Add(value);
  std::ranges::reverse(values);
  for (const double value : values) backward.Add(value);
  for (size_t at = 0; at < values.size();) {
    SquareSum part;
    const size_t end = std::min(values.size(), at + 1 + random.Below(50));
    for (; at < end; ++at) part.Add(values[at]);
    grouped.Add(part);
  }
  EXPECT_EQ(forward, backward);
  EXPECT_EQ(forward, grouped);
  long double exact = 0;
  for (const double value : values) exact += value;
  EXPECT_NEAR(forward.value(), static_cast<double>(exact), static_cast<double>(exact) * 1e-15);
}

TEST(SquareSumTest, SingleNumbersComeBack) {
  for (const double value : {0.0, 1.0, 0.1, 3e-20, 1e27, 0x1p90, 0x1p-128, 12345.678}) {
    SquareSum sum;
    sum.Add(value);
    EXPECT_NEAR(sum.value(), value, 0x1p-128 + value * 1e-15) << value;
  }
  SquareSum large, tiny;
  large.Add(1e300);  // Counts as the largest value.
  EXPECT_EQ(large.value(), 0x1p90);
  tiny.Add(1e-300);
  EXPECT_EQ(tiny.value(), 0);
}

TEST(SquareSumTest, CarriesOverWords) {
  SquareSum sum;
  sum.words = {~uint64_t{0}, ~uint64_t{0}, 5, 0};
  SquareSum one;
  one.words = {1, 0, 0, 0};
  sum.Add(one);
  EXPECT_EQ(sum.words, (std::array<uint64_t, 4>{0, 0, 6, 0}));
}

TEST(SquareSumTest, RowsOfAnyLengthAreTheirSquares) {
  for (const size_t size : {0u, 1u, 7u, 8u, 9u, 64u, 1000u}) {
    std::vector<float> row(size);
    double plain = 0;
    for (size_t i = 0; i < size; ++i) {
      row[i] = static_cast<float>(i % 13) - 6.5f;
      plain += double{row[i]} * double{row[i]};
    }
    EXPECT_EQ(SquaresOf(row), plain);  // Sums of quarters: exact in any order.
  }
}

}  // namespace
}  // namespace hdps
