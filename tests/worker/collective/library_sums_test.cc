// Tests sums that Gloo and NCCL make themselves: how far they are from sums in rank order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/host/half_floats.h"
#include "tests/error_bound.h"
#include "tests/worker/collective/collective_backends.h"

namespace hdps {
namespace {

// None, fewer than ranks, an odd number, and several segments of Gloo's for each rank.
constexpr size_t kCounts[] = {0, 1, 3, 1023, 700001};

class LibrarySumsTest : public testing::TestWithParam<std::tuple<Backend, uint32_t>> {
 protected:
  LibrarySumsTest() : size_(std::get<1>(GetParam())) {
    const Backend& backend = std::get<0>(GetParam());
    if (backend.CanHave(size_, &why_not_)) ranks_ = backend.Make(size_);
  }
  void SetUp() override {
    if (ranks_.empty()) GTEST_SKIP() << "no NCCL for so many ranks: " << why_not_;
  }

  // Returns the sums of the absolute values over the ranks.
  std::vector<double> Magnitudes(size_t count) const {
    std::vector<double> magnitudes(count);
    for (uint32_t r = 0; r < size_; ++r) {
      const std::vector<float> values = RankFloats(r, count);
      for (size_t i = 0; i < count; ++i) magnitudes[i] += std::fabs(values[i]);
    }
    return magnitudes;
  }
  // Both are sums of `size_` values, whose first is exact: size_ - 1 roundings each.
  void ExpectNear(const std::vector<float>& sums, size_t begin, size_t count) const {
    const std::vector<float> in_order = SumInRankOrder(FirstRanks(size_), count);
    const std::vector<double> magnitudes = Magnitudes(count);
    for (size_t i = 0; i < sums.size(); ++i) {
      const double bound = SumsErrorBound(size_ - 1, magnitudes[begin + i]);
      ASSERT_LE(std::fabs(double{sums[i]} - in_order[begin + i]), bound) << begin + i;
    }
  }

  const uint32_t size_;
  std::string why_not_;
  Ranks ranks_;
};

TEST_P(LibrarySumsTest, SumsAreAsNearAsTheirOrderAllowsAndTheSameOnAllRanks) {
  for (const size_t count : kCounts) {
    std::vector<std::vector<float>> sums(size_);
    OnAllRanks(size_, [&](uint32_t r) {
      sums[r] = RankFloats(r, count);
      ExpectOk(ranks_[r]->AllReduceSum(sums[r]));
    });
    for (uint32_t r = 0; r < size_; ++r) EXPECT_TRUE(SameBits(sums[r], sums[0])) << r;
    ExpectNear(sums[0], 0, count);
    if (size_ > 2 && count > 1000) {
      EXPECT_FALSE(SameBits(sums[0], SumInRankOrder(FirstRanks(size_), count)))
          << "the library's order is another one, so these are not its sums";
    }
  }
}

TEST_P(LibrarySumsTest, ListsOfSeveralKindsAtOnce) {
  for (const size_t count : kCounts) {
    std::vector<std::vector<float>> sums(size_), others(size_);
    OnAllRanks(size_, [&](uint32_t r) {
      sums[r] = RankFloats(r, count);
      others[r] = RankFloats(r, 17);
      std::vector<uint64_t> bits = {uint64_t{1} << r}, none;
      std::vector<uint32_t> small = {r};
      const std::array lists = {OrOf(bits), SumOf(sums[r]), SumOf(small), SumOf(none),
                                SumOf(others[r])};
      ExpectOk(ranks_[r]->AllReduce(lists));
      EXPECT_THAT(bits, testing::ElementsAre((uint64_t{1} << size_) - 1));
      EXPECT_THAT(small, testing::ElementsAre(size_ * (size_ - 1) / 2));
    });
    ExpectNear(sums[size_ - 1], 0, count);
    ExpectNear(others[0], 0, 17);
  }
}

TEST_P(LibrarySumsTest, PartsOfAReduceScatterMayDiffer) {
  std::vector<size_t> counts;
  size_t count = 0;
  for (uint32_t r = 0; r < size_; ++r) count += counts.emplace_back(r % 3 == 1 ? 0 : 1000 + r);
  OnAllRanks(size_, [&](uint32_t r) {
    const std::vector<float> values = RankFloats(r, count);
    std::vector<float> given = values, mine(counts[r]);
    ExpectOk(ranks_[r]->ReduceScatter(SumOf(given), counts, mine.data()));
    EXPECT_TRUE(SameBits(given, values));
    size_t begin = 0;
    for (uint32_t before = 0; before < r; ++before) begin += counts[before];
    ExpectNear(mine, begin, count);
  });
}

// Each addition of halves may be rounded to a half.
TEST_P(LibrarySumsTest, HalvesAreAsNearAsHalvesCanBe) {
  constexpr size_t kCount = 1023;
  const VectorWidth width = WidestVectors();
  for (const DType format : {DType::kFp16, DType::kBf16}) {
    std::vector<std::vector<uint16_t>> halves(size_, std::vector<uint16_t>(kCount));
    std::vector<double> exact(kCount), magnitudes(kCount);
    for (uint32_t r = 0; r < size_; ++r) {
      std::vector<float> values = RankFloats(r, kCount);
      auto* const bytes = reinterpret_cast<std::byte*>(halves[r].data());
      NarrowFloats(width, format, values, bytes);
      WidenFloats(width, format, bytes, values);
      for (size_t i = 0; i < kCount; ++i) {
        exact[i] += values[i];
        magnitudes[i] += std::fabs(values[i]);
      }
    }
    OnAllRanks(size_, [&](uint32_t r) {
      const ReducedValues list = {
          format == DType::kFp16 ? Reduction::kSumFp16 : Reduction::kSumBf16, halves[r].data(),
          kCount};
      ExpectOk(ranks_[r]->AllReduce({&list, 1}));
      EXPECT_EQ(halves[r].size(), kCount);
    });
    // gamma of size - 1 roundings to a half and of as many to a float before it. Below fp16's
    // normal numbers a rounding moves a value by at most 2^-25.
    const double half = format == DType::kFp16 ? 0x1p-11 : 0x1p-8;
    const double nu = (size_ - 1) * (half + kFloatRoundoff) * (1 + half);
    for (uint32_t r = 0; r < size_; ++r) {
      EXPECT_EQ(halves[r], halves[0]);
      std::vector<float> sums(kCount);
      WidenFloats(width, format, reinterpret_cast<std::byte*>(halves[r].data()), sums);
      for (size_t i = 0; i < kCount; ++i) {
        ASSERT_LE(std::fabs(sums[i] - exact[i]),
                  nu / (1 - nu) * magnitudes[i] + (size_ - 1) * 0x1p-25);
      }
    }
  }
}

TEST_P(LibrarySumsTest, GathersOfOneLengthAndOfSeveralHaveTheSameBytes) {
  for (const bool several : {false, true}) {
    OnAllRanks(size_, [&](uint32_t r) {
      std::vector<size_t> sizes;
      std::vector<std::byte> expected;
      for (uint32_t from = 0; from < size_; ++from) {
        const std::vector<std::byte> theirs = BytesOf(from, 1001 + (several ? from : 0));
        sizes.push_back(theirs.size());
        expected.insert(expected.end(), theirs.begin(), theirs.end());
      }
      std::vector<std::byte> all(expected.size());
      ExpectOk(ranks_[r]->AllGather(BytesOf(r, sizes[r]), sizes, all));
      EXPECT_EQ(all, expected);
    });
  }
}

// The library's group is that of all ranks.
TEST_P(LibrarySumsTest, GroupsThatAreSplitOffAddInTheOrderOfTheirRanks) {
  OnAllRanks(size_, [&](uint32_t r) {
    const Result<std::unique_ptr<Collective>> all = ranks_[r]->Split(0);
    ASSERT_TRUE(all.ok()) << all.status().message();
    std::vector<float> values = RankFloats(r, 1023);
    ExpectOk((*all)->AllReduceSum(values));
    EXPECT_TRUE(SameBits(values, SumInRankOrder(FirstRanks(size_), 1023)));
  });
}

std::string NameOf(const testing::TestParamInfo<std::tuple<Backend, uint32_t>>& given) {
  return std::string(std::get<0>(given.param).name) + std::to_string(std::get<1>(given.param));
}
INSTANTIATE_TEST_SUITE_P(All, LibrarySumsTest,
                         testing::Combine(testing::Values(kGloosOwn), testing::Range(1u, 6u)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(OnGpus, LibrarySumsTest,
                         testing::Combine(testing::Values(kNcclsOwn), testing::Range(1u, 5u)),
                         NameOf);

}  // namespace
}  // namespace hdps
