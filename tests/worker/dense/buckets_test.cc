// Tests which tensors are reduced together.
#include "worker/dense/buckets.h"
#include "common/job/spec/parallel_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace hdps {
namespace {

using ::testing::ElementsAre;

constexpr size_t kMebibyte = size_t{1} << 20;

std::vector<FusedTensor> Tensors(const std::vector<double>& mebibytes) {
  std::vector<FusedTensor> tensors;
  for (const double size : mebibytes) {
    tensors.push_back({static_cast<size_t>(size * static_cast<double>(kMebibyte))});
  }
  return tensors;
}

TEST(BucketsTest, AutoTakesUpTo64MebibytesTogether) {
  EXPECT_THAT(BucketsOf(Tensors({1, 2, 3}), true, {}), ElementsAre(Bucket{0, 1, 2}));
  EXPECT_THAT(BucketsOf(Tensors({30, 34, 1, 70, 1}), true, {}),
              ElementsAre(Bucket{0, 1}, Bucket{2}, Bucket{3}, Bucket{4}));
  EXPECT_TRUE(BucketsOf({}, true, {}).empty());
}

// Counts the bins of the greedy rule independently.
TEST(BucketsTest, SizeIsTheGreedyRule) {
  std::vector<double> sizes;
  for (int t = 0; t < 60; ++t) sizes.push_back(0.05 * ((t * 37) % 29));
  for (const uint32_t limit : {1u, 2u, 5u}) {
    size_t bins = 1;
    double filled = 0;
    for (const double size : sizes) {
      if (filled > 0 && filled + size > limit + 1e-9) {
        ++bins;
        filled = 0;
      }
      filled += size;
    }
    const FusionSpec fusion = {FusionMode::kSize, limit, {}};
    const std::vector<Bucket> buckets = BucketsOf(Tensors(sizes), true, fusion);
    EXPECT_EQ(buckets.size(), bins) << limit;
    uint32_t next = 0;
    for (const Bucket& bucket : buckets) {
      double sum = 0;
      for (const uint32_t t : bucket) {
        EXPECT_EQ(t, next++);
        sum += sizes[t];
      }
      EXPECT_TRUE(sum <= limit + 1e-9 || bucket.size() == 1);
    }
    EXPECT_EQ(next, sizes.size());
  }
}

TEST(BucketsTest, IndexCutsBeforeItsNumbers) {
  const std::vector<FusedTensor> tensors = Tensors(std::vector<double>(10, 100));
  const auto at = [&](std::vector<uint32_t> index) {
    return BucketsOf(tensors, true, {FusionMode::kIndex, 0, std::move(index)});
  };
  EXPECT_THAT(at({4, 7}), ElementsAre(Bucket{0, 1, 2, 3}, Bucket{4, 5, 6}, Bucket{7, 8, 9}));
  EXPECT_EQ(at({}).size(), 1u);
  EXPECT_EQ(at({1, 2, 3, 4, 5, 6, 7, 8, 9}).size(), 10u);
}

TEST(BucketsTest, IdsStandAboveTheRest) {
  std::vector<FusedTensor> tensors = Tensors({1, 1, 1, 1, 1, 1});
  const int32_t ids[] = {1, -1, 2, 1, 0, -1};
  for (size_t t = 0; t < tensors.size(); ++t) tensors[t].fusion = ids[t];
  EXPECT_THAT(BucketsOf(tensors, true, {}),
              ElementsAre(Bucket{2}, Bucket{0, 3}, Bucket{4}, Bucket{1, 5}))
      << "in the order in which they are full";
  EXPECT_EQ(BucketsOf(tensors, false, {}).size(), 6u) << "without fusion all are alone";
  // An index counts the tensors without an id.
  EXPECT_THAT(BucketsOf(tensors, true, {FusionMode::kIndex, 0, {1}}),
              ElementsAre(Bucket{1}, Bucket{2}, Bucket{0, 3}, Bucket{4}, Bucket{5}));
}

}  // namespace
}  // namespace hdps
