// First weights: from seed, table and key alone, in the distribution they name, for ever the same.
#include <algorithm>
#include <cmath>
#include <vector>

#include "embedding/table.h"
#include "gtest/gtest.h"

namespace hdps {
namespace {

TEST(InitRow, DependsOnSeedTableAndKeyAlone) {
  const InitSpec uniform{InitKind::kUniform, 0.5f};
  auto row = [&](uint64_t seed, uint32_t table, Key key, size_t dim) {
    std::vector<float> weights(dim);
    InitRow(uniform, seed, {table}, key, weights);
    return weights;
  };
  const std::vector<float> first = row(1, 2, 3, 8);
  EXPECT_EQ(first, row(1, 2, 3, 8));
  EXPECT_NE(first, row(2, 2, 3, 8));
  EXPECT_NE(first, row(1, 3, 3, 8));
  EXPECT_NE(first, row(1, 2, 4, 8));
  const std::vector<float> longer = row(1, 2, 3, 20);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), longer.begin()));
}

TEST(InitRow, FillsTheSpanItNames) {
  std::vector<float> weights(100000);
  InitRow({InitKind::kUniform, 0.25f}, 1, {0}, 1, weights);
  const auto [low, high] = std::minmax_element(weights.begin(), weights.end());
  EXPECT_GE(*low, -0.25f);
  EXPECT_LT(*low, -0.249f);
  EXPECT_LT(*high, 0.25f);
  EXPECT_GT(*high, 0.249f);
  InitRow({InitKind::kConstant, 2.0f}, 1, {0}, 1, weights);
  EXPECT_EQ(weights[99999], 2.0f);
  InitRow({InitKind::kZeros, 2.0f}, 1, {0}, 1, weights);
  EXPECT_EQ(weights[99999], 0.0f);
}

TEST(InitRow, NormalIsNormal) {
  // Kolmogorov and Smirnov: the largest gap to the normal distribution, for this fixed stream.
  std::vector<float> values(200000);
  InitRow({InitKind::kNormal, 3.0f}, 1, {0}, 1, values);
  std::sort(values.begin(), values.end());
  double gap = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = 0.5 * std::erfc(-values[i] / 3.0 / std::sqrt(2.0));
    const double share = static_cast<double>(i) / static_cast<double>(values.size());
    gap = std::max(gap, std::abs(expected - share));
  }
  EXPECT_LT(gap * std::sqrt(static_cast<double>(values.size())), 1.63);  // 1 % level.
  EXPECT_LT(values.front(), -3.0f * 3.9f);
  EXPECT_GT(values.back(), 3.0f * 3.9f);
}

TEST(InitRow, StaysAsItIs) {
  // Bits that checkpoints and other machines rely on: a change here makes every job another one.
  std::vector<float> weights(2);
  InitRow({InitKind::kUniform, 1.0f}, 1, {0}, 2, weights);
  const std::vector<float> uniform = weights;
  InitRow({InitKind::kNormal, 1.0f}, 1, {0}, 2, weights);
  EXPECT_EQ(uniform, (std::vector<float>{0x1.d88cdp-2f, 0x1.cabfe8p-1f}));
  EXPECT_EQ(weights, (std::vector<float>{0x1.3ae71ep-1f, 0x1.a030ap+0f}));
}

}  // namespace
}  // namespace hdps
