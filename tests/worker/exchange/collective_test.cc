// One suite for every collective; ranks are threads.
#include "worker/exchange/collective.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/platform/executor.h"
#include "common/platform/random.h"

namespace hdps {
namespace {

using Ranks = std::vector<std::unique_ptr<Collective>>;

void OnAllRanks(uint32_t size, const std::function<void(uint32_t)>& body) {
  std::vector<std::unique_ptr<Thread>> threads;
  for (uint32_t r = 0; r < size; ++r) {
    threads.push_back(StartThread("rank", [r, &body] { body(r); }));
  }
  for (auto& thread : threads) thread->Join();
}

Ranks NewGlooRanks(uint32_t size) {
  const std::unique_ptr<Board> board = NewLocalStore();
  Ranks ranks(size);
  OnAllRanks(size, [&](uint32_t r) {
    CollectiveOptions options;
    options.rank = r;
    options.size = size;
    options.group = "test";
    options.timeout_ms = 20000;
    Result<std::unique_ptr<Collective>> collective = NewCollective("gloo", options, *board);
    ASSERT_TRUE(collective.ok()) << collective.status().message();
    ranks[r] = *std::move(collective);
  });
  return ranks;
}

// Values whose sum depends on the order in which they are added.
std::vector<float> ValuesOf(uint32_t rank, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = RandomAt(rank + 1, i);
    values[i] = (UnitFloat(bits) - 0.5f) * std::ldexp(1.0f, static_cast<int>(bits % 21) - 10);
  }
  return values;
}

std::vector<float> SumInRankOrder(uint32_t size, size_t count) {
  std::vector<float> sum = ValuesOf(0, count);
  for (uint32_t r = 1; r < size; ++r) {
    const std::vector<float> other = ValuesOf(r, count);
    for (size_t i = 0; i < count; ++i) sum[i] += other[i];
  }
  return sum;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Case {
  const char* name;
  Ranks (*make)(uint32_t size);
};

class CollectiveTest : public testing::TestWithParam<Case> {};

TEST_P(CollectiveTest, EveryRankGetsTheSumInRankOrder) {
  for (uint32_t size = 1; size <= 4; ++size) {
    const Ranks ranks = GetParam().make(size);
    for (const size_t count : {1, 2, 3, 7, 64, 1023, 100003}) {
      const std::vector<float> expected = SumInRankOrder(size, count);
      OnAllRanks(size, [&](uint32_t r) {
        std::vector<float> values = ValuesOf(r, count);
        const Status status = ranks[r]->AllReduceSum(values);
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_TRUE(SameBits(values, expected)) << "size " << size << " count " << count;
      });
    }
  }
}

TEST_P(CollectiveTest, TheSumsDependOnTheOrder) {
  // Otherwise the test above would prove nothing.
  std::vector<float> backwards = ValuesOf(3, 1023);
  for (uint32_t r = 3; r-- > 0;) {
    const std::vector<float> other = ValuesOf(r, 1023);
    for (size_t i = 0; i < backwards.size(); ++i) backwards[i] += other[i];
  }
  EXPECT_FALSE(SameBits(backwards, SumInRankOrder(4, 1023)));
}

TEST_P(CollectiveTest, NegativeZeroIsTheNeutralElement) {
  const Ranks ranks = GetParam().make(2);
  OnAllRanks(2, [&](uint32_t r) {
    std::vector<float> values =
        r == 0 ? std::vector<float>{-0.0f, 0.0f, 1.0f} : std::vector<float>(3, -0.0f);
    ASSERT_TRUE(ranks[r]->AllReduceSum(values).ok());
    EXPECT_TRUE(SameBits(values, {-0.0f, 0.0f, 1.0f}));
  });
}

TEST_P(CollectiveTest, NobodyLeavesABarrierBeforeTheLastHasCome) {
  const uint32_t size = 3;
  const Ranks ranks = GetParam().make(size);
  std::vector<std::atomic<int>> turns(size);
  OnAllRanks(size, [&](uint32_t r) {
    for (int turn = 1; turn <= 50; ++turn) {
      turns[r] = turn;
      ASSERT_TRUE(ranks[r]->Barrier().ok());
      for (uint32_t other = 0; other < size; ++other) EXPECT_GE(turns[other], turn);
      ASSERT_TRUE(ranks[r]->Barrier().ok());
    }
  });
}

TEST_P(CollectiveTest, AbortEndsAWaitForARankThatDoesNotCome) {
  const Ranks ranks = GetParam().make(2);
  Status status;
  auto waiting = StartThread("rank", [&] { status = ranks[0]->Barrier(); });
  ranks[0]->Abort();
  waiting->Join();
  EXPECT_EQ(status.code(), Code::kCancelled) << status.message();
}

INSTANTIATE_TEST_SUITE_P(All, CollectiveTest,
                         testing::Values(Case{"local", NewLocalCollectives},
                                         Case{"gloo", NewGlooRanks}),
                         [](const auto& given) { return std::string(given.param.name); });

TEST(CollectiveChoice, RefusesNcclByNameWhereThereIsNoGpu) {
  std::string why_none;
  if (CountNcclGpus(&why_none) > 0) GTEST_SKIP() << "there is a GPU here";
  const std::unique_ptr<Board> board = NewLocalStore();
  CollectiveOptions options;
  options.group = "test";
  const auto refused = NewCollective("nccl", options, *board);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("'nccl'"), std::string::npos);
  const auto chosen = NewCollective("auto", options, *board);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_STREQ((*chosen)->name(), "gloo");
}

// NCCL takes one rank a GPU, so one machine with one GPU shows one rank.
TEST(NcclCollective, OneRankKeepsItsBits) {
  std::string why_none;
  if (CountNcclGpus(&why_none) == 0) GTEST_SKIP() << "no NCCL: " << why_none;
  const std::unique_ptr<Board> board = NewLocalStore();
  CollectiveOptions options;
  options.group = "test";
  auto collective = NewCollective("auto", options, *board);
  ASSERT_TRUE(collective.ok()) << collective.status().message();
  EXPECT_STREQ((*collective)->name(), "nccl");
  for (const size_t count : {1, 7, 100003}) {
    std::vector<float> values = ValuesOf(0, count);
    ASSERT_TRUE((*collective)->AllReduceSum(values).ok());
    EXPECT_TRUE(SameBits(values, ValuesOf(0, count)));
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
