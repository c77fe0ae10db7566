// Tests the queue of requests: its order, its bound, and its end.
#include "tools/serve/front/request_queue.h"

#include <gmock/gmock.h>

#include <atomic>
#include <numeric>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"

namespace hdps {
namespace {

// A gate that holds threads until it is opened.
class Gate {
 public:
  void Pass() {
    MutexLock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    while (!open_) changed_.wait(mutex_);
  }
  void AwaitWaiting(int count) {
    MutexLock lock(mutex_);
    while (waiting_ < count) changed_.wait(mutex_);
  }
  void Open() {
    const MutexLock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  int waiting_ HDPS_GUARDED_BY(mutex_) = 0;
  bool open_ HDPS_GUARDED_BY(mutex_) = false;
};

TEST(RequestQueueTest, WorkIsBegunInTheOrderInWhichItCame) {
  Gate gate;
  std::vector<int> ran;
  const auto queue = NewRequestQueue(1);
  ASSERT_TRUE(queue->Take([&] { gate.Pass(); }));
  gate.AwaitWaiting(1);
  for (int i = 0; i < kWaitingOfThreadMax; ++i) {
    ASSERT_TRUE(queue->Take([&ran, i] { ran.push_back(i); }));
  }
  gate.Open();
  queue->Close();
  std::vector<int> all(kWaitingOfThreadMax);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(ran, all);
}

TEST(RequestQueueTest, NoMoreWorkWaitsThanMay) {
  constexpr int kThreads = 3;
  Gate gate;
  std::atomic<int> ran = 0;
  const auto queue = NewRequestQueue(kThreads);
  for (int i = 0; i < kThreads; ++i) ASSERT_TRUE(queue->Take([&] { gate.Pass(); }));
  gate.AwaitWaiting(kThreads);
  for (int i = 0; i < kThreads * kWaitingOfThreadMax; ++i) {
    ASSERT_TRUE(queue->Take([&ran] { ++ran; })) << i;
  }
  EXPECT_FALSE(queue->Take([&ran] { ++ran; }));
  gate.Open();
  queue->Close();
  EXPECT_EQ(ran, kThreads * kWaitingOfThreadMax);
}

TEST(RequestQueueTest, CloseWaitsForWhatWasTakenAndTakesNoMore) {
  Gate gate;
  std::atomic<bool> closed = false, late = false;
  const auto queue = NewRequestQueue(2);
  // What was taken before is run although the queue is closed while it waits.
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queue->Take([&] { gate.Pass(); }));
  ASSERT_TRUE(queue->Take([&] { late = closed.load(); }));
  gate.AwaitWaiting(2);
  const auto closing = StartThread("close", [&] {
    queue->Close();
    closed = true;
  });
  while (queue->Take([] {})) {
  }
  gate.Open();
  closing->Join();
  EXPECT_FALSE(late);
  EXPECT_FALSE(queue->Take([] {}));
  queue->Close();  // Once more is nothing.
}

TEST(RequestQueueTest, EachIsRunOnceWhoeverBringsIt) {
  constexpr int kBringers = 4, kEach = 2000;
  std::vector<std::atomic<int>> ran(kBringers * kEach);
  std::atomic<int> taken = 0;
  const auto queue = NewRequestQueue(3);
  std::vector<std::unique_ptr<Thread>> bringers;
  for (int b = 0; b < kBringers; ++b) {
    bringers.push_back(StartThread("bring", [&, b] {
      for (int i = 0; i < kEach; ++i) {
        std::atomic<int>& mine = ran[static_cast<size_t>(b * kEach + i)];
        if (queue->Take([&mine] { ++mine; })) {
          ++taken;
        } else {
          mine = 1;
        }
      }
    }));
  }
  for (const auto& bringer : bringers) bringer->Join();
  queue->Close();
  EXPECT_GT(taken, 0);
  for (const auto& count : ran) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace hdps
