// Tests initial weights: a fixed function of seed, table and key, in the distribution they name.
#include "embedding/memory/row_init.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "common/job/spec/init_spec.h"
#include "common/platform/random.h"
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
  // Kolmogorov-Smirnov: the largest distance to the normal distribution, for this fixed stream.
  std::vector<float> values(200000);
  InitRow({InitKind::kNormal, 3.0f}, 1, {0}, 1, values);
  std::sort(values.begin(), values.end());
  double gap = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = 0.5 * std::erfc(-values[i] / 3.0 / std::sqrt(2.0));
    const double share = static_cast<double>(i) / static_cast<double>(values.size());
    gap = std::max(gap, std::abs(expected - share));
  }
  // Kolmogorov-Smirnov test at the 1 % level.
  EXPECT_LT(gap * std::sqrt(static_cast<double>(values.size())), 1.63);
  EXPECT_LT(values.front(), -3.0f * 3.9f);
  EXPECT_GT(values.back(), 3.0f * 3.9f);
}

TEST(InitRow, StaysAsItIs) {
  // Checkpoints and other machines rely on these bits: a change here changes every job.
  std::vector<float> weights(2);
  InitRow({InitKind::kUniform, 1.0f}, 1, {0}, 2, weights);
  const std::vector<float> uniform = weights;
  InitRow({InitKind::kNormal, 1.0f}, 1, {0}, 2, weights);
  EXPECT_EQ(uniform, (std::vector<float>{0x1.d88cdp-2f, 0x1.cabfe8p-1f}));
  EXPECT_EQ(weights, (std::vector<float>{0x1.3ae71ep-1f, 0x1.a030ap+0f}));
}

// Computes the quantile as in the paper.
double PlainQuantile(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * (((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179) /
           (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1.0);
  }
  double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
  double tail;
  if (r <= 5) {
    r -= 1.6;
    tail = (((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777) /
           ((0.12021132975 * r + 0.73700164250) * r + 1.0);
  } else {
    r -= 5;
    tail = (((0.017337203997 * r + 0.42868294337) * r + 3.0812263860) * r + 6.6579051150) /
           ((0.012258202635 * r + 0.24197894225) * r + 1.0);
  }
  return q < 0 ? -tail : tail;
}

TEST(InitRow, NormalFollowsThePaper) {
  constexpr size_t kWeights = 300000;
  const Key key = 5;
  std::vector<float> weights(kWeights);
  InitRow({InitKind::kNormal, 2.0f}, 3, {1}, key, weights);
  const uint64_t stream = CombineKeys(RandomAt(3, 1), key);
  for (size_t i = 0; i < kWeights; ++i) {
    const double p = static_cast<double>(RandomAt(stream, i) >> 12) * 0x1p-52 + 0x1p-53;
    ASSERT_FLOAT_EQ(weights[i], static_cast<float>(PlainQuantile(p) * 2)) << i;
  }
}

// Inverts MixBits: returns the number that it maps to `hash`.
uint64_t MixedTo(uint64_t hash) {
  const auto unshift = [](uint64_t x, int by) {
    uint64_t out = x;
    for (int done = by; done < 64; done += by) out = x ^ (out >> by);
    return out;
  };
  const uint64_t x = unshift(unshift(hash, 31) * 0x319642b2d24d8ec3u, 27);
  return unshift(x * 0x96de1b173f119089u, 30);
}

// Numbers that no seed of a test would reach: the key is computed from the number it must draw.
TEST(InitRow, NormalReachesTheFarTails) {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;
  constexpr uint64_t kSeed = 3;
  const uint64_t table_seed = RandomAt(kSeed, 1);
  for (const uint64_t draw : {uint64_t{0}, uint64_t{1} << 12, uint64_t{9} << 24, ~uint64_t{0},
                              ~(uint64_t{5} << 20), uint64_t{1} << 40, uint64_t{1} << 63}) {
    const uint64_t stream = MixedTo(MixedTo(draw) - kStep) ^ kStep;
    ASSERT_EQ(RandomAt(stream, 0), draw);
    const Key key = MixedTo(MixedTo(stream) ^ table_seed * kStep);
    ASSERT_EQ(CombineKeys(table_seed, key), stream);
    float weight = 0;
    InitRow({InitKind::kNormal, 1.0f}, kSeed, {1}, key, {&weight, 1});
    const double p = static_cast<double>(draw >> 12) * 0x1p-52 + 0x1p-53;
    EXPECT_FLOAT_EQ(weight, static_cast<float>(PlainQuantile(p))) << draw;
  }
}

// A row is the same beside any other rows, at any length, with any vectors.
TEST(InitRow, ManyAreAsEach) {
  std::vector<VectorWidth> widths = {VectorWidth::kPlain};
  for (const VectorWidth width : {VectorWidth::kAvx2, VectorWidth::kAvx512}) {
    if (width <= WidestVectors()) widths.push_back(width);
  }
  for (const InitKind kind :
       {InitKind::kZeros, InitKind::kConstant, InitKind::kUniform, InitKind::kNormal}) {
    const InitSpec init{kind, 0.75f};
    for (const size_t dim : {1u, 3u, 8u, 16u, 80u, 127u, 128u, 129u, 300u}) {
      std::vector<Key> keys(50);
      for (size_t k = 0; k < keys.size(); ++k) keys[k] = MixBits(k);
      std::vector<std::vector<float>> each(keys.size(), std::vector<float>(dim));
      for (size_t k = 0; k < keys.size(); ++k) InitRow(init, 9, {4}, keys[k], each[k]);
      for (const VectorWidth width : widths) {
        std::vector<std::vector<float>> many(keys.size(), std::vector<float>(dim + 1, 7.0f));
        std::vector<std::byte*> rows;
        for (auto& row : many) rows.push_back(reinterpret_cast<std::byte*>(row.data()));
        InitRows(width, init, 9, {4}, keys, 0, dim, rows.data());
        for (size_t k = 0; k < keys.size(); ++k) {
          ASSERT_EQ(many[k].back(), 7.0f) << "behind the row";
          many[k].pop_back();
          ASSERT_EQ(many[k], each[k]) << "dim " << dim << ", kind " << static_cast<int>(kind);
        }
      }
    }
  }
}

// A part of the columns equals that part of the row.
TEST(InitRow, ColumnsAreThoseOfTheWholeRow) {
  for (const InitKind kind : {InitKind::kConstant, InitKind::kUniform, InitKind::kNormal}) {
    std::vector<float> whole(12);
    InitRow({kind, 0.5f}, 9, {4}, 77, whole);
    for (const size_t dim : {1u, 3u, 4u}) {
      for (size_t first = 0; first + dim <= whole.size(); first += dim) {
        std::vector<float> part(dim);
        auto* const row = reinterpret_cast<std::byte*>(part.data());
        const Key key = 77;
        InitRows(WidestVectors(), {kind, 0.5f}, 9, {4}, {&key, 1}, first, dim, &row);
        EXPECT_EQ(part, std::vector<float>(whole.begin() + static_cast<long>(first),
                                           whole.begin() + static_cast<long>(first + dim)));
      }
    }
  }
}

}  // namespace
}  // namespace hdps
