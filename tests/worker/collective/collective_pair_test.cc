// Tests two ranks of each backend: how a wait ends if the other rank does not come.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/platform/executor.h"
#include "kernels/dense_ops.h"
#include "tests/worker/collective/collective_backends.h"

namespace hdps {
namespace {

class CollectivePairTest : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);  // As every program has it: Gloo writes to ranks that have gone.
    std::string why_not;
    if (!GetParam().CanHave(2, &why_not)) {
      GTEST_SKIP() << "no NCCL for two ranks: " << why_not;
    }
  }
};

TEST_P(CollectivePairTest, NegativeZeroIsTheNeutralElement) {
  const Ranks ranks = GetParam().Make(2);
  OnAllRanks(2, [&](uint32_t r) {
    std::vector<float> values =
        r == 0 ? std::vector<float>{-0.0f, 0.0f, 1.0f} : std::vector<float>(3, -0.0f);
    ASSERT_TRUE(ranks[r]->AllReduceSum(values).ok());
    EXPECT_TRUE(SameBits(values, {-0.0f, 0.0f, 1.0f}));
  });
}

TEST_P(CollectivePairTest, AbortEndsAWaitForARankThatDoesNotCome) {
  const Ranks ranks = GetParam().Make(2);
  Status barrier, sum;
  std::vector<float> values(10);
  auto waiting = StartThread("rank", [&] {
    sum = ranks[0]->AllReduceSum(values);
    barrier = ranks[0]->Barrier();
  });
  ranks[0]->Abort();
  waiting->Join();
  EXPECT_EQ(sum.code(), Code::kCancelled) << sum.message();
  EXPECT_EQ(barrier.code(), Code::kCancelled) << barrier.message();
}

// Without an abort, a wait ends by the timeout given when the group was made.
TEST_P(CollectivePairTest, ARankThatDoesNotComeIsNotAwaitedForever) {
  if (GetParam().local()) GTEST_SKIP() << "threads of one process wait without limit";
  const Ranks ranks = GetParam().Make(2, 300);
  std::vector<float> values(10);
  const Status status = ranks[0]->AllReduceSum(values);
  EXPECT_EQ(status.code(), Code::kUnavailable) << status.message();
  EXPECT_FALSE(ranks[0]->Barrier().ok()) << "A group that has failed stays so.";
}

// Before a call, in the middle of it and after it.
TEST_P(CollectivePairTest, AbortMeetsCallsAtAnyMoment) {
#ifdef __SANITIZE_THREAD__
  if (GetParam().TestName() == "gloo_library") {
    GTEST_SKIP() << "Gloo frees a buffer when a counter says that its loop is done with it, and "
                    "the thread sanitizer does not see the counter";
  }
#endif
  for (int after = 0; after < 20; ++after) {
    const Ranks ranks = GetParam().Make(2);
    std::atomic<int> calls = 0;
    std::unique_ptr<Thread> rank[2];
    for (uint32_t r = 0; r < 2; ++r) {
      rank[r] = StartThread("rank", [&, r] {
        std::vector<float> values = RankFloats(r, 100);
        while (ranks[r]->AllReduceSum(values).ok()) ++calls;
      });
    }
    while (calls < after) std::this_thread::yield();
    for (const auto& each : ranks) each->Abort();
    for (const auto& each : rank) each->Join();
  }
}

// GPU memory goes through Gloo by way of the host.
TEST_P(CollectivePairTest, DeviceMemoryIsReducedInPlace) {
  std::vector<std::unique_ptr<DenseOps>> ops;
  for (uint32_t r = 0; r < 2; ++r) {
    Result<std::unique_ptr<DenseOps>> made = NewCudaOps({nullptr, r});
    if (!made.ok()) GTEST_SKIP() << "no GPU: " << made.status().message();
    ops.push_back(*std::move(made));
  }
  const Ranks ranks = GetParam().Make(2);
  for (const size_t count : {1, 1023, 100003}) {
    std::vector<float*> on_device;
    for (uint32_t r = 0; r < 2; ++r) {
      on_device.push_back(ops[r]->Allocate(count));
      ops[r]->Upload(RankFloats(r, count), on_device[r]);
      ops[r]->Finish();  // A group reads finished values.
    }
    OnAllRanks(2, [&](uint32_t r) {
      const ReducedValues list = SumOf(std::span(on_device[r], count), MemorySpace::kDevice);
      ExpectOk(ranks[r]->AllReduce({&list, 1}));
    });
    for (uint32_t r = 0; r < 2; ++r) {
      std::vector<float> sum(count);
      ops[r]->Download(on_device[r], sum);
      EXPECT_TRUE(SameBits(sum, SumInRankOrder({0, 1}, count))) << count;
      ops[r]->Free(on_device[r]);
    }
  }
}

// A sum of two has the same bits in either order, so the libraries' own sums are tested too.
INSTANTIATE_TEST_SUITE_P(All, CollectivePairTest,
                         testing::Values(kLocal, kGloo, kNccl, kGloosOwn, kNcclsOwn),
                         [](const auto& given) { return given.param.TestName(); });

}  // namespace
}  // namespace hdps
