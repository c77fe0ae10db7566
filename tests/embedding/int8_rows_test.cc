// Tests rows in 8 bits: how far a weight may be off, and which keys have a row.
#include "embedding/int8_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/platform/random.h"

namespace hdps {
namespace {

TEST(Int8RowsTest, AWeightIsOffByHalfAScaleAtMost) {
  for (const uint32_t dim : {1u, 5u, 64u}) {
    constexpr Key kKeys = 6000;
    FlatRows saved(WeightFormat::kFp32, dim);
    ASSERT_TRUE(saved.Begin(kKeys).ok());
    Random random(dim);
    std::vector<std::vector<float>> rows;
    for (Key key = 0; key < kKeys; ++key) {
      std::vector<float>& row = rows.emplace_back(dim);
      const double size = std::exp2(static_cast<double>(random.Below(60))) * 1e-9;
      for (float& weight : row) weight = static_cast<float>(random.Normal() * size);
    }
    for (Key key = 0; key < kKeys; ++key) ASSERT_TRUE(saved.Store({&key, 1}, rows[key]).ok());
    saved.Publish();
    const auto int8 = Int8Rows::Of(saved);
    EXPECT_EQ(int8->num_rows(), kKeys);
    std::vector<float> read(dim);
    for (Key key = 0; key < kKeys; ++key) {
      ASSERT_TRUE(int8->Read(key, read));
      float largest = 0;
      for (const float weight : rows[key]) largest = std::max(largest, std::abs(weight));
      // The scale is rounded up to 8 bits of mantissa. A quotient near 127 and the product are
      // rounded to floats, which is less than 2^-16 of a scale each.
      const double scale = double{largest} / 127 * (1 + 0x1p-7);
      for (uint32_t i = 0; i < dim; ++i) {
        ASSERT_LE(std::abs(double{read[i]} - rows[key][i]), scale * (0.5 + 0x1p-15)) << key;
      }
    }
    EXPECT_FALSE(int8->Read(kKeys, read));
  }
}

TEST(Int8RowsTest, ZerosAndTheSmallestNumbersStayFinite) {
  const float least = std::numeric_limits<float>::denorm_min();
  const std::vector<std::vector<float>> rows = {{0, 0}, {least, 0}, {-1e-40f, 1e-41f}, {3e38f, 1}};
  FlatRows saved(WeightFormat::kFp32, 2);
  ASSERT_TRUE(saved.Begin(rows.size()).ok());
  for (Key key = 0; key < rows.size(); ++key) ASSERT_TRUE(saved.Store({&key, 1}, rows[key]).ok());
  saved.Publish();
  const auto int8 = Int8Rows::Of(saved);
  std::vector<float> read(2);
  for (Key key = 0; key < rows.size(); ++key) {
    ASSERT_TRUE(int8->Read(key, read));
    // The smallest scale above 0 is 2^-133.
    const float scale = key == 3 ? 3e38f / 127 * (1 + 0x1p-7f) : 0x1p-133f;
    for (size_t i = 0; i < 2; ++i) EXPECT_LE(std::abs(read[i] - rows[key][i]), scale / 2) << key;
  }
  ASSERT_TRUE(int8->Read(0, read));
  EXPECT_EQ(read, rows[0]);
}

}  // namespace
}  // namespace hdps
