// Tests queued calls: order, failures, ends, and counters; sums in 16 bits.
#include "worker/collective/collective_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "common/platform/random.h"
#include "kernels/host/half_floats.h"
#include "worker/collective/rank_transport.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;

class CollectiveQueueTest : public testing::Test {
 protected:
  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
};

TEST_F(CollectiveQueueTest, CallsAreMadeInOrderBesideTheCaller) {
  constexpr uint32_t kRanks = 3;
  const std::vector<std::unique_ptr<Collective>> groups = NewThreadCollectives(kRanks);
  OnAllRanks(kRanks, [&](uint32_t rank) {
    CollectiveQueue queue(*groups[rank], *clock_);
    std::vector<std::vector<float>> values;
    std::vector<int> order;
    CollectiveTicket last;
    for (int i = 0; i < 20; ++i) values.push_back(std::vector<float>(100, float(rank + 1)));
    for (int i = 0; i < 20; ++i) {
      last = queue.Submit([&values, &order, i](Collective& group) {
        order.push_back(i);
        return group.AllReduceSum(values[static_cast<size_t>(i)]);
      });
    }
    ASSERT_TRUE(queue.Wait(last).ok());
    std::vector<int> expected(20);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(order, expected);
    for (const std::vector<float>& sums : values) EXPECT_EQ(sums, std::vector<float>(100, 6.0f));
    EXPECT_GE(queue.TakeBusyNs(), 0);
    EXPECT_EQ(groups[rank]->counts().of(CollectiveKind::kAllReduce).calls, 20u);
    // A short list travels whole, to each of the others.
    EXPECT_EQ(groups[rank]->counts().of(CollectiveKind::kAllReduce).bytes, 20u * 400 * 2);
    EXPECT_TRUE(queue.WaitForAll().ok());
  });
}

TEST_F(CollectiveQueueTest, BehindAFailureNothingIsCalled) {
  const std::vector<std::unique_ptr<Collective>> groups = NewThreadCollectives(1);
  CollectiveQueue queue(*groups[0], *clock_);
  int calls = 0;
  const auto count = [&calls](Collective&) {
    ++calls;
    return Status();
  };
  const CollectiveTicket first = queue.Submit(count);
  EXPECT_TRUE(queue.Wait(first).ok());
  queue.Submit([](Collective&) { return Status(Code::kUnavailable, "gone"); });
  queue.Submit(count);
  EXPECT_EQ(queue.WaitForAll().message(), "gone");
  EXPECT_EQ(calls, 1);
}

TEST_F(CollectiveQueueTest, AbortEndsTheCallAtHandAndTheQueueItself) {
  const std::vector<std::unique_ptr<Collective>> groups = NewThreadCollectives(2);
  std::vector<float> values(10);
  {
    CollectiveQueue queue(*groups[0], *clock_);
    queue.Submit([&](Collective& group) { return group.AllReduceSum(values); });
    groups[0]->Abort();
    EXPECT_EQ(queue.WaitForAll().code(), Code::kCancelled);
  }
  // A queue that ends while its call waits for a missing rank aborts the group.
  const std::vector<std::unique_ptr<Collective>> others = NewThreadCollectives(2);
  { CollectiveQueue queue(*others[0], *clock_); }
  CollectiveQueue queue(*others[0], *clock_);
  queue.Submit([&](Collective& group) { return group.AllReduceSum(values); });
}

// Parts of a reduce-scatter have the lengths that the ranks give, and each is the sum in rank
// order.
TEST_F(CollectiveQueueTest, PartsOfAReduceScatterMayDiffer) {
  constexpr uint32_t kRanks = 3;
  const std::vector<size_t> counts = {5, 0, 20000};
  const size_t total = 20005;
  const std::vector<std::unique_ptr<Collective>> groups = NewThreadCollectives(kRanks);
  std::vector<std::vector<float>> values(kRanks), mine(kRanks);
  Random random(5);
  for (uint32_t r = 0; r < kRanks; ++r) {
    for (size_t i = 0; i < total; ++i) values[r].push_back(float(random.Unit()));
    mine[r].resize(counts[r]);
  }
  OnAllRanks(kRanks, [&](uint32_t rank) {
    ASSERT_TRUE(groups[rank]->ReduceScatter(SumOf(values[rank]), counts, mine[rank].data()).ok());
    EXPECT_EQ(groups[rank]->counts().of(CollectiveKind::kReduceScatter).bytes,
              (total - counts[rank]) * sizeof(float));
  });
  size_t at = 0;
  for (uint32_t r = 0; r < kRanks; ++r) {
    for (size_t i = 0; i < counts[r]; ++i, ++at) {
      EXPECT_EQ(mine[r][i], values[0][at] + values[1][at] + values[2][at]);
    }
  }
}

TEST_F(CollectiveQueueTest, HalvesAreAddedIn32BitsAndRoundedOnce) {
  constexpr uint32_t kRanks = 3;
  const VectorWidth width = WidestVectors();
  for (const size_t count : {size_t{7}, size_t{100000}}) {  // Whole, and in segments.
    for (const DType format : {DType::kFp16, DType::kBf16}) {
      std::vector<std::vector<uint16_t>> halves(kRanks, std::vector<uint16_t>(count));
      std::vector<float> sums(count);
      Random random(9);
      for (uint32_t r = 0; r < kRanks; ++r) {
        std::vector<float> values(count);
        for (float& value : values) value = float(random.Unit() - 0.5) * 100;
        NarrowFloats(width, format, values, reinterpret_cast<std::byte*>(halves[r].data()));
        WidenFloats(width, format, reinterpret_cast<std::byte*>(halves[r].data()), values);
        for (size_t i = 0; i < count; ++i) sums[i] = r == 0 ? values[i] : sums[i] + values[i];
      }
      std::vector<uint16_t> expected(count);
      NarrowFloats(width, format, sums, reinterpret_cast<std::byte*>(expected.data()));
      const std::vector<std::unique_ptr<Collective>> groups = NewThreadCollectives(kRanks);
      OnAllRanks(kRanks, [&](uint32_t rank) {
        const ReducedValues list = {
            format == DType::kFp16 ? Reduction::kSumFp16 : Reduction::kSumBf16, halves[rank].data(),
            count};
        ASSERT_TRUE(groups[rank]->AllReduce({&list, 1}).ok());
        EXPECT_EQ(halves[rank], expected);
      });
    }
  }
}

TEST(NcclTransport, AddsHalvesAsTheHostDoes) {
  std::string why_none;
  if (NcclGpuName(0, &why_none).empty()) GTEST_SKIP() << "no NCCL: " << why_none;
  const std::unique_ptr<RendezvousStore> store = NewMemoryStore();
  CollectiveOptions options;
  options.group = "test";
  const auto made = NewNcclTransport(options, 0, *store);
  ASSERT_TRUE(made.ok()) << made.status().message();
  RankTransport& nccl = **made;
  // Every finite half, and infinity, side by side.
  constexpr uint32_t kRanks = 2;
  constexpr size_t kCount = 65536, kBytes = kCount * sizeof(uint16_t);
  for (const bool fp16 : {true, false}) {
    std::vector<uint16_t> parts(kRanks * kCount), result(kCount);
    for (size_t i = 0; i < kCount; ++i) {
      const uint16_t exponent = fp16 ? 0x7c00 : 0x7f80, not_one = fp16 ? 0x03ff : 0x007f;
      const auto no_nan = [&](size_t bits) {
        const auto half = static_cast<uint16_t>(bits);
        return (half & exponent) == exponent ? static_cast<uint16_t>(half & ~not_one) : half;
      };
      parts[i] = no_nan(i);
      parts[kCount + i] = no_nan((i * 40503) & 0x7fff & (fp16 ? 0x7bff : 0x7f7f));
    }
    std::byte* const there = *nccl.Reserve(Scratch::kParts, kRanks * kBytes);
    std::byte* const sum = *nccl.Reserve(Scratch::kStaged, kBytes);
    ASSERT_TRUE(nccl.CopyIn(there, parts.data(), MemorySpace::kHost, kRanks * kBytes).ok());
    const Reduction reduction = fp16 ? Reduction::kSumFp16 : Reduction::kSumBf16;
    ASSERT_TRUE(nccl.Combine(reduction, there, kBytes, kRanks, kCount, sum).ok());
    ASSERT_TRUE(nccl.CopyOut(result.data(), MemorySpace::kHost, sum, kBytes).ok());
    ASSERT_TRUE(nccl.Finish().ok());
    const DType format = fp16 ? DType::kFp16 : DType::kBf16;
    for (size_t i = 0; i < kCount; ++i) {
      float a = 0, b = 0;
      const VectorWidth width = WidestVectors();
      WidenFloats(width, format, reinterpret_cast<std::byte*>(&parts[i]), {&a, 1});
      WidenFloats(width, format, reinterpret_cast<std::byte*>(&parts[kCount + i]), {&b, 1});
      uint16_t expected = 0;
      const float both = a + b;
      NarrowFloats(width, format, {&both, 1}, reinterpret_cast<std::byte*>(&expected));
      ASSERT_EQ(result[i], expected) << i;
    }
  }
}

}  // namespace
}  // namespace hdps
