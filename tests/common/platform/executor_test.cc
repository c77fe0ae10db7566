// Tests parallel loops and submitted work, on one thread and on several.
#include "common/platform/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "common/base/bounded_queue.h"

namespace hdps {
namespace {

// The parameter is the number of threads; 0 is the inline executor.
class ExecutorTest : public ::testing::TestWithParam<int> {
 protected:
  std::unique_ptr<Executor> executor_ =
      GetParam() == 0 ? NewInlineExecutor() : NewTbbExecutor(GetParam());
};
INSTANTIATE_TEST_SUITE_P(All, ExecutorTest, ::testing::Values(0, 1, 2, 8));

TEST_P(ExecutorTest, EveryPieceRunsOnce) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{1000}}) {
    std::vector<int> runs(count, 0);
    executor_->ParallelFor(count, [&runs](size_t i) { ++runs[i]; });
    EXPECT_EQ(std::count(runs.begin(), runs.end(), 1), static_cast<std::ptrdiff_t>(count));
  }
}

TEST_P(ExecutorTest, LoopsMayHoldLoopsAndLocks) {
  std::vector<Mutex> locks(4);
  std::vector<uint64_t> sums(16, 0);
  executor_->ParallelFor(16, [&](size_t i) {
    MutexLock lock(locks[i % 4]);
    std::vector<uint64_t> parts(32, 0);
    executor_->ParallelFor(32, [&parts](size_t j) { parts[j] = j; });
    for (const uint64_t part : parts) sums[i] += part;
  });
  for (const uint64_t sum : sums) EXPECT_EQ(sum, 496u);
}

TEST_P(ExecutorTest, SubmittedWorkRunsInOrderAndBeforeTheEnd) {
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) executor_->Submit([&order, i] { order.push_back(i); });
  executor_.reset();
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(TbbExecutorTest, SubmittedWorkMayBlockWhileLoopsGoOn) {
  for (const int threads : {1, 2}) {
    std::unique_ptr<Executor> executor = NewTbbExecutor(threads);
    BoundedQueue<int> gate(1);
    std::atomic<int> passed = 0;
    executor->Submit([&] { passed = gate.Pop().value(); });
    std::vector<int> runs(64, 0);
    executor->ParallelFor(64, [&runs](size_t i) { ++runs[i]; });
    EXPECT_EQ(passed, 0);
    gate.Push(7);
    executor.reset();
    EXPECT_EQ(passed, 7);
  }
}

TEST(ThreadTest, JoinsWhenDestroyed) {
  bool ran = false;
  StartThread("a name longer than fifteen bytes", [&ran] { ran = true; }).reset();
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace hdps
