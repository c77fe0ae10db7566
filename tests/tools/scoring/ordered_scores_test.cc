// Tests that batches are scored by several threads at once, and taken in order, up to an error.
#include "tools/scoring/ordered_scores.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {
namespace {

constexpr uint32_t kRows = 3;  // Of a batch.

// Gives so many batches, and then the end or an error.
class FewBatches : public BatchReader {
 public:
  explicit FewBatches(uint64_t count, Status end = {}) : count_(count), end_(std::move(end)) {}
  Result<std::optional<Batch>> Next() override {
    if (given_ == count_ && !end_.ok()) return end_;
    if (given_ == count_) return std::optional<Batch>();
    Batch batch;
    batch.num_examples = kRows;
    batch.first_row = kRows * given_++;
    batch.labels.assign(kRows, 0.0f);
    return std::optional<Batch>(std::move(batch));
  }
  Status StartEpoch(uint32_t, uint64_t) override { return {}; }
  uint64_t bad_rows() const override { return given_; }
  void SetBadRows(uint64_t) override {}
  uint64_t bytes_read() const override { return 0; }
  double progress() const override { return 0; }

 private:
  const uint64_t count_;
  const Status end_;
  uint64_t given_ = 0;
};

uint64_t NumberOf(const ScoredBatch& scored) { return scored.batch.first_row / kRows; }

class OrderedScoresTest : public ::testing::Test {
 protected:
  Result<ScoreSums> Score(uint64_t count, size_t threads, const ScoreBatch& score,
                          Status end = {}) {
    BatchStream batches(std::make_unique<FewBatches>(count, std::move(end)), 0, 0, 1, *clock_);
    return ScoreInOrder(batches, threads, score, [this](const ScoredBatch& scored) {
      taken_.push_back(NumberOf(scored));
      return Status();
    });
  }
  static std::vector<uint64_t> First(size_t count) {
    std::vector<uint64_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }
  // Waits until Tell() was called for this batch.
  void WaitFor(uint64_t number) {
    MutexLock lock(mutex_);
    while (told_.size() <= number || !told_[number]) changed_.wait(mutex_);
  }
  void Tell(uint64_t number) {
    MutexLock lock(mutex_);
    if (told_.size() <= number) told_.resize(number + 1);
    told_[number] = true;
    changed_.notify_all();
  }

  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  std::vector<uint64_t> taken_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<bool> told_;
};

// Each even batch is scored only after the odd one behind it.
TEST_F(OrderedScoresTest, LaterBatchesAreScoredFirstAndTakenLast) {
  const auto sums = Score(20, 2, [this](size_t thread, ScoredBatch* scored) {
    EXPECT_LT(thread, 2u);
    const uint64_t number = NumberOf(*scored);
    if (number % 2 == 0) WaitFor(number + 1);
    Tell(number);
    scored->loss_sum = static_cast<double>(number);
    return Status();
  });
  ASSERT_TRUE(sums.ok());
  EXPECT_EQ(taken_, First(20));
  EXPECT_EQ(sums->examples, 20 * kRows);
  EXPECT_EQ(sums->loss_sum, 190);
  EXPECT_EQ(sums->bad_rows, 20u);
}

// Batch 4 fails before batch 3, whose error counts.
TEST_F(OrderedScoresTest, TheFirstErrorInTheOrderOfRowsEndsIt) {
  const auto sums = Score(1000, 2, [this](size_t, ScoredBatch* scored) {
    const uint64_t number = NumberOf(*scored);
    if (number == 3) WaitFor(4);
    if (number == 4) Tell(4);
    return number < 3 ? Status() : Status(Code::kInvalidArgument, std::to_string(number));
  });
  EXPECT_EQ(sums.status().message(), "3");
  EXPECT_EQ(taken_, First(3));
}

TEST_F(OrderedScoresTest, AnErrorOfTheReaderComesBehindItsBatches) {
  const auto none = [](size_t, ScoredBatch*) { return Status(); };
  const auto sums = Score(7, 3, none, Status(Code::kInvalidArgument, "line 22"));
  EXPECT_EQ(sums.status().message(), "line 22");
  EXPECT_EQ(taken_, First(7));
}

// Nothing is taken until batch 0 is scored, for which the others that may be read are scored.
TEST_F(OrderedScoresTest, ReadsNoMoreThanIsBounded) {
  constexpr size_t kThreads = 3, kAheadMax = kThreads + 2;
  std::atomic<uint64_t> scored_before = 0;
  const auto sums = Score(50, kThreads, [&](size_t, ScoredBatch* scored) {
    const uint64_t number = NumberOf(*scored);
    if (number == 0) {
      WaitFor(kAheadMax - 1);
      Tell(0);
      return Status();
    }
    bool first_is_there = false;
    {
      MutexLock lock(mutex_);
      first_is_there = !told_.empty() && told_[0];
    }
    if (!first_is_there) ++scored_before;
    EXPECT_TRUE(first_is_there || number < kAheadMax) << number;
    Tell(number);
    return Status();
  });
  ASSERT_TRUE(sums.ok());
  EXPECT_LE(scored_before, kAheadMax - 1);
  EXPECT_EQ(taken_, First(50));
}

TEST_F(OrderedScoresTest, FilesWithoutRowsHaveNoScores) {
  const auto sums = Score(0, 2, [](size_t, ScoredBatch*) { return Status(); });
  ASSERT_TRUE(sums.ok());
  EXPECT_EQ(sums->examples, 0u);
}

}  // namespace
}  // namespace hdps
