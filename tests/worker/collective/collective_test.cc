// Tests every backend and every operation with one suite; ranks are threads.
#include "worker/collective/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "common/platform/executor.h"
#include "tests/worker/collective/collective_backends.h"
#include "worker/collective/rank_transport.h"

namespace hdps {
namespace {

// None, fewer than ranks, an odd number in one exchange, and enough for each rank to reduce a part.
constexpr size_t kCounts[] = {0, 1, 3, 1023, 100003};

class CollectiveTest : public testing::TestWithParam<std::tuple<Backend, uint32_t>> {
 protected:
  CollectiveTest() : size_(std::get<1>(GetParam())) {
    const Backend& backend = std::get<0>(GetParam());
    if (backend.CanHave(size_, &why_not_)) ranks_ = backend.Make(size_);
  }
  void SetUp() override {
    if (ranks_.empty()) GTEST_SKIP() << "no NCCL for so many ranks: " << why_not_;
  }

  // Calls body on every rank, for every count.
  void ForAll(const std::function<void(uint32_t rank, size_t count)>& body) {
    for (const size_t count : kCounts) {
      SCOPED_TRACE("count " + std::to_string(count));
      OnAllRanks(size_, [&](uint32_t r) { body(r, count); });
    }
  }

  const uint32_t size_;
  std::string why_not_;
  Ranks ranks_;
};

TEST_P(CollectiveTest, AllReduceAddsInTheOrderOfTheRanks) {
  ForAll([&](uint32_t r, size_t count) {
    std::vector<float> values = RankFloats(r, count);
    ExpectOk(ranks_[r]->AllReduceSum(values));
    EXPECT_TRUE(SameBits(values, SumInRankOrder(FirstRanks(size_), count)));
  });
}

TEST_P(CollectiveTest, AllReduceOfSeveralKindsAtOnce) {
  ForAll([&](uint32_t r, size_t count) {
    std::vector<float> floats = RankFloats(r, count);
    std::vector<uint64_t> sums = NumbersOf(r, count), bits = NumbersOf(r, 5);
    std::vector<uint32_t> small = {r, 0xffffffff};
    const std::array lists = {OrOf(bits), SumOf(floats), SumOf(small), SumOf(sums)};
    ExpectOk(ranks_[r]->AllReduce(lists));
    EXPECT_TRUE(SameBits(floats, SumInRankOrder(FirstRanks(size_), count)));
    std::vector<uint64_t> expected_sums(count), expected_bits(5);
    for (uint32_t from = 0; from < size_; ++from) {
      const std::vector<uint64_t> theirs = NumbersOf(from, std::max<size_t>(count, 5));
      for (size_t i = 0; i < count; ++i) expected_sums[i] += theirs[i];
      for (size_t i = 0; i < 5; ++i) expected_bits[i] |= theirs[i];
    }
    EXPECT_EQ(sums, expected_sums);
    EXPECT_EQ(bits, expected_bits);
    EXPECT_THAT(small, testing::ElementsAre(size_ * (size_ - 1) / 2, 0u - size_));
  });
}

TEST_P(CollectiveTest, ReduceScatterGivesEveryRankItsSegment) {
  ForAll([&](uint32_t r, size_t count) {
    const std::vector<float> values = RankFloats(r, count);
    std::vector<float> given = values;
    const Segment segment = SegmentOf(count, r, size_);
    std::vector<float> mine(segment.size);
    ExpectOk(ranks_[r]->ReduceScatter(SumOf(given), mine.data()));
    const std::vector<float> sum = SumInRankOrder(FirstRanks(size_), count);
    const auto begin = sum.begin() + static_cast<ptrdiff_t>(segment.begin);
    EXPECT_TRUE(SameBits(mine, {begin, begin + static_cast<ptrdiff_t>(segment.size)}));
    EXPECT_TRUE(SameBits(given, values));
  });
}

TEST_P(CollectiveTest, BroadcastGivesAllTheBytesOfAnyRoot) {
  ForAll([&](uint32_t r, size_t count) {
    for (uint32_t root = 0; root < size_; ++root) {
      std::vector<std::byte> bytes = BytesOf(r, count);
      ExpectOk(ranks_[r]->Broadcast(root, bytes));
      EXPECT_EQ(bytes, BytesOf(root, count)) << "root " << root;
    }
  });
}

TEST_P(CollectiveTest, AllGatherPutsBytesOfAnyLengthInRankOrder) {
  ForAll([&](uint32_t r, size_t count) {
    // Ranks 1 and 4 have nothing.
    const auto length = [&](uint32_t rank) { return rank % 3 == 1 ? 0 : count + 5 * rank; };
    std::vector<size_t> sizes;
    std::vector<std::byte> expected;
    for (uint32_t from = 0; from < size_; ++from) {
      const std::vector<std::byte> theirs = BytesOf(from, length(from));
      sizes.push_back(theirs.size());
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    std::vector<std::byte> all(expected.size());
    ExpectOk(ranks_[r]->AllGather(BytesOf(r, length(r)), sizes, all));
    EXPECT_EQ(all, expected);
    // A part may be in place already.
    size_t begin = 0;
    for (uint32_t from = 0; from < r; ++from) begin += sizes[from];
    const std::vector<std::byte> own = BytesOf(r, length(r));
    std::vector<std::byte> again(expected.size());
    std::copy(own.begin(), own.end(), again.begin() + static_cast<ptrdiff_t>(begin));
    ExpectOk(ranks_[r]->AllGather({again.data() + begin, own.size()}, sizes, again));
    EXPECT_EQ(again, expected);
  });
}

TEST_P(CollectiveTest, ListsNeedNoLengthsToBeGathered) {
  ForAll([&](uint32_t r, size_t count) {
    const auto lists = GatherLists<uint64_t>(*ranks_[r], NumbersOf(r, count * (r % 2)));
    ASSERT_TRUE(lists.ok()) << lists.status().message();
    ASSERT_EQ(lists->size(), size_);
    for (uint32_t from = 0; from < size_; ++from) {
      EXPECT_EQ((*lists)[from], NumbersOf(from, count * (from % 2))) << from;
    }
  });
}

TEST_P(CollectiveTest, NobodyLeavesABarrierBeforeTheLastHasCome) {
  std::vector<std::atomic<int>> turns(size_);
  OnAllRanks(size_, [&](uint32_t r) {
    for (int turn = 1; turn <= 50; ++turn) {
      turns[r] = turn;
      ExpectOk(ranks_[r]->Barrier());
      for (uint32_t other = 0; other < size_; ++other) EXPECT_GE(turns[other], turn);
      ExpectOk(ranks_[r]->Barrier());
    }
  });
}

TEST_P(CollectiveTest, PartsAreGroupsAndTakeTurnsWithTheWhole) {
  OnAllRanks(size_, [&](uint32_t r) {
    const uint32_t part = r % 2;
    Result<std::unique_ptr<Collective>> split = ranks_[r]->Split(part);
    ASSERT_TRUE(split.ok()) << split.status().message();
    Collective& group = **split;
    EXPECT_EQ(group.rank(), r / 2);
    EXPECT_EQ(group.size(), (size_ + 1 - part) / 2);
    std::vector<uint32_t> members;
    for (uint32_t m = part; m < size_; m += 2) members.push_back(m);
    for (const size_t count : kCounts) {
      // Different numbers of calls in the two parts, before all meet again.
      for (uint32_t times = 0; times < 1 + 2 * part; ++times) {
        std::vector<float> values = RankFloats(r, count);
        ExpectOk(group.AllReduceSum(values));
        EXPECT_TRUE(SameBits(values, SumInRankOrder(members, count)));
      }
      std::vector<float> values = RankFloats(r, count);
      ExpectOk(ranks_[r]->AllReduceSum(values));
      EXPECT_TRUE(SameBits(values, SumInRankOrder(FirstRanks(size_), count)));
      std::vector<std::byte> bytes = BytesOf(r, count);
      ExpectOk(group.Broadcast(group.size() - 1, bytes));
      EXPECT_EQ(bytes, BytesOf(members.back(), count));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, CollectiveTest,
                         testing::Combine(testing::Values(kLocal, kGloo), testing::Range(1u, 6u)),
                         [](const auto& given) {
                           return std::string(std::get<0>(given.param).name) +
                                  std::to_string(std::get<1>(given.param));
                         });

INSTANTIATE_TEST_SUITE_P(OnGpus, CollectiveTest,
                         testing::Combine(testing::Values(kNccl), testing::Range(1u, 5u)),
                         [](const auto& given) {
                           return std::string(std::get<0>(given.param).name) +
                                  std::to_string(std::get<1>(given.param));
                         });

TEST(CollectiveValues, TheirSumsDependOnTheOrder) {
  // Otherwise the tests of the order would prove nothing.
  EXPECT_FALSE(SameBits(SumInRankOrder({3, 2, 1, 0}, 1023), SumInRankOrder({0, 1, 2, 3}, 1023)));
}

TEST(CollectiveChoice, RefusesNcclByNameWhereARankHasNoGpu) {
  const std::unique_ptr<RendezvousStore> store = NewMemoryStore();
  CollectiveOptions options;
  options.group = "test";
  const auto refused = NewCollective("nccl", options, *store);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("'nccl'"), std::string::npos);
  const auto chosen = NewCollective("auto", options, *store);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_STREQ((*chosen)->name(), "gloo");
}

// NCCL needs a GPU per rank, so one GPU shows one rank: what it spreads, and how a GPU combines the
// values of many ranks.
TEST(NcclTransport, SpreadsAndCombinesOnTheDevice) {
  std::string why_none;
  if (NcclGpuName(0, &why_none).empty()) GTEST_SKIP() << "no NCCL: " << why_none;
  const std::unique_ptr<RendezvousStore> store = NewMemoryStore();
  CollectiveOptions options;
  options.group = "test";
  const auto made = NewNcclTransport(options, 0, *store);
  ASSERT_TRUE(made.ok()) << made.status().message();
  RankTransport& nccl = **made;
  constexpr uint32_t kRanks = 5;
  for (const size_t count : {1, 7, 100003}) {
    const size_t stride = (count * sizeof(float) + 7) / 8 * 8, bytes = count * sizeof(float);
    std::byte* const parts = *nccl.Reserve(Scratch::kParts, stride * kRanks);
    std::byte* const sum = *nccl.Reserve(Scratch::kStaged, bytes);
    for (uint32_t r = 0; r < kRanks; ++r) {
      const std::vector<float> values = RankFloats(r, count);
      ExpectOk(nccl.CopyIn(parts + stride * r, values.data(), MemorySpace::kHost, bytes));
      ExpectOk(nccl.Finish());
    }
    ExpectOk(nccl.Combine(Reduction::kSumFloat, parts, stride, kRanks, count, sum));
    const uint32_t members[] = {0};
    const RankMove part = {0, sum, bytes};
    ExpectOk(nccl.Spread(members, {&part, 1}));
    std::vector<float> result(count);
    ExpectOk(nccl.CopyOut(result.data(), MemorySpace::kHost, sum, bytes));
    ExpectOk(nccl.Finish());
    EXPECT_TRUE(SameBits(result, SumInRankOrder(FirstRanks(kRanks), count))) << count;
  }
}

TEST(SegmentOf, CoversEveryValueOnce) {
  for (const size_t count : {0, 1, 2, 5, 1023}) {
    for (uint32_t size = 1; size <= 7; ++size) {
      size_t at = 0;
      for (uint32_t rank = 0; rank < size; ++rank) {
        const Segment segment = SegmentOf(count, rank, size);
        EXPECT_EQ(segment.begin, at);
        EXPECT_LE(segment.size, count / size + 1);
        at += segment.size;
      }
      EXPECT_EQ(at, count);
    }
  }
}

}  // namespace
}  // namespace hdps
