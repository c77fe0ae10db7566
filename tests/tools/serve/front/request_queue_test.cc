// Tests the queue of requests: its order, its bound, and its end.
#include "tools/serve/front/request_queue.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"
#include "tests/tools/serve/front/fake_model.h"
#include "worker/data/columnar/columns.h"

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
  ASSERT_TRUE(queue->Take([&](ScoreJoiner&) { gate.Pass(); }));
  gate.AwaitWaiting(1);
  for (int i = 0; i < kWaitingOfThreadMax; ++i) {
    ASSERT_TRUE(queue->Take([&ran, i](ScoreJoiner&) { ran.push_back(i); }));
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
  for (int i = 0; i < kThreads; ++i) ASSERT_TRUE(queue->Take([&](ScoreJoiner&) { gate.Pass(); }));
  gate.AwaitWaiting(kThreads);
  for (int i = 0; i < kThreads * kWaitingOfThreadMax; ++i) {
    ASSERT_TRUE(queue->Take([&ran](ScoreJoiner&) { ++ran; })) << i;
  }
  EXPECT_FALSE(queue->Take([&ran](ScoreJoiner&) { ++ran; }));
  gate.Open();
  queue->Close();
  EXPECT_EQ(ran, kThreads * kWaitingOfThreadMax);
}

TEST(RequestQueueTest, CloseWaitsForWhatWasTakenAndTakesNoMore) {
  Gate gate;
  std::atomic<bool> closed = false, late = false;
  const auto queue = NewRequestQueue(2);
  // What was taken before is run although the queue is closed while it waits.
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queue->Take([&](ScoreJoiner&) { gate.Pass(); }));
  ASSERT_TRUE(queue->Take([&](ScoreJoiner&) { late = closed.load(); }));
  gate.AwaitWaiting(2);
  const auto closing = StartThread("close", [&] {
    queue->Close();
    closed = true;
  });
  while (queue->Take([](ScoreJoiner&) {})) {
  }
  gate.Open();
  closing->Join();
  EXPECT_FALSE(late);
  EXPECT_FALSE(queue->Take([](ScoreJoiner&) {}));
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
        if (queue->Take([&mine](ScoreJoiner&) { ++mine; })) {
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

// ---- Requests that wait for others.

// Far more than a right queue needs, so that a batch ends because it is full or the queue closes.
constexpr int64_t kLongUs = kBatchWaitUsMax;

// Takes requests of `rows` rows each, whose batches the model counts.
class JoiningTest : public testing::Test {
 protected:
  bool Take(RequestQueue& queue, uint64_t rows) {
    return queue.Take([this, rows](ScoreJoiner& joiner) {
      ScoreRequest request;
      request.rows = RowsOf(rows);
      joiner.Score({&model_, kNoClock, std::move(request),
                    [this](const ScoreRequest&, const Result<ScoreAnswer>& answer) {
                      EXPECT_TRUE(answer.ok());
                      ++finished_;
                    }});
    });
  }
  static std::shared_ptr<const ColumnTable> RowsOf(uint64_t rows) {
    const auto numbers = std::make_shared<const std::vector<float>>(rows);
    ColumnChunk chunk;
    chunk.length = static_cast<int64_t>(rows);
    chunk.cells = numbers->data();
    auto table = ColumnTable::FromChunks({{"age", {CellKind::kFloat32, nullptr, "float32"}}},
                                         {chunk}, numbers);
    EXPECT_TRUE(table.ok());
    return *std::move(table);
  }

  FakeModel model_{"clicks"};
  std::atomic<int> finished_ = 0;
};

TEST_F(JoiningTest, SmallRequestsAreScoredTogetherUntilTheirBatchIsFull) {
  Gate gate;
  const auto queue = NewRequestQueue(1, kLongUs);
  ASSERT_TRUE(queue->Take([&](ScoreJoiner&) { gate.Pass(); }));
  gate.AwaitWaiting(1);
  constexpr int kFull = kJoinedRows / 32;
  for (int i = 0; i < 2 * kFull + 1; ++i) ASSERT_TRUE(Take(*queue, 32));
  gate.Open();
  queue->Close();
  EXPECT_EQ(finished_, 2 * kFull + 1);
  EXPECT_THAT(model_.together(), testing::ElementsAre(kFull, kFull, 1));
}

TEST_F(JoiningTest, NoRequestIsLostAmongThreadsThatWait) {
  for (int turn = 0; turn < 50; ++turn) {
    finished_ = 0;
    const auto queue = NewRequestQueue(3, /*batch_wait_us=*/turn % 2 == 0 ? kLongUs : 20);
    constexpr int kRequests = 3 * kWaitingOfThreadMax;
    for (int i = 0; i < kRequests; ++i) ASSERT_TRUE(Take(*queue, 1 + i % 80));
    queue->Close();
    EXPECT_EQ(finished_, kRequests);
  }
}

TEST_F(JoiningTest, ALargeRequestIsScoredAloneAndEndsTheWait) {
  Gate gate;
  const auto queue = NewRequestQueue(1, kLongUs);
  ASSERT_TRUE(queue->Take([&](ScoreJoiner&) { gate.Pass(); }));
  gate.AwaitWaiting(1);
  for (const uint64_t rows : {1, 2, 65, 3}) ASSERT_TRUE(Take(*queue, rows));
  gate.Open();
  queue->Close();
  EXPECT_EQ(finished_, 4);
  EXPECT_THAT(model_.together(), testing::ElementsAre(2, 1));
}

TEST_F(JoiningTest, WithoutAWaitEachIsScoredAtOnce) {
  const auto queue = NewRequestQueue(2);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Take(*queue, 1));
  queue->Close();
  EXPECT_EQ(finished_, 10);
  EXPECT_TRUE(model_.together().empty());
}

TEST_F(JoiningTest, ALoneRequestIsAnsweredThoughNobodyJoins) {
  const auto queue = NewRequestQueue(2, 1);
  ASSERT_TRUE(Take(*queue, 1));
  while (finished_ == 0) std::this_thread::yield();
  EXPECT_THAT(model_.together(), testing::ElementsAre(1));
}

}  // namespace
}  // namespace hdps
