// Tests that answers never mix two versions, and that newer ones come while many threads ask.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "tests/tools/serve/versions/planted_run.h"
#include "tools/serve/versions/served_checkpoint.h"

namespace hdps {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kAnswers = 20'000;
#else
constexpr uint64_t kAnswers = 1'000'000;
#endif

// Threads that ask for planted rows until the object is destroyed. Each row is an answer.
class Askers {
 public:
  Askers(ServedCheckpoint& model, int threads) : model_(model) {
    for (int t = 0; t < threads; ++t) {
      threads_.push_back(StartThread("asker", [this, t] { Ask(t); }));
    }
  }
  ~Askers() { Stop(); }
  void Stop() {
    stops_ = true;
    threads_.clear();
  }
  uint64_t answers() const { return answers_; }
  // Rows whose score is not that of the version that the answer names, or that failed.
  uint64_t wrong() const { return wrong_; }

 private:
  void Ask(int thread) {
    const ScoreRequest request{.rows = PlantedRows(20, 7 * thread),
                               .outputs = {ScoreOutput::kLogit}};
    while (!stops_) {
      const auto answer = model_.Score(request, kNoClock);
      answers_ += 20;
      if (!answer.ok()) {
        wrong_ += 20;
        continue;
      }
      const float logit = PlantedRun::kTerms * static_cast<float>(answer->step);
      wrong_ += 20 - static_cast<uint64_t>(std::ranges::count(answer->outputs[0].numbers, logit));
    }
  }

  ServedCheckpoint& model_;
  std::atomic<bool> stops_ = false;
  std::atomic<uint64_t> answers_ = 0, wrong_ = 0;
  std::vector<std::unique_ptr<Thread>> threads_;
};

class VersionsUnderLoadTest : public testing::Test {
 protected:
  void Open(int64_t look_ms, std::function<void(const std::string&)> tell = nullptr) {
    ServedOptions options;
    options.folder = "run";
    options.threads = 3;
    options.look_ms = look_ms;
    options.tell = std::move(tell);
    auto opened = ServedCheckpoint::Open(options, *files_, *clock_);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    model_ = *std::move(opened);
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  PlantedRun run_{*files_, "run"};
  std::unique_ptr<ServedCheckpoint> model_;
};

TEST_F(VersionsUnderLoadTest, NoAnswerMixesTwoVersions) {
  run_.SaveWhole(1);
  Open(0);
  Askers askers(*model_, 3);
  Clock clock = 1;
  bool pinned = false;
  for (; askers.answers() < kAnswers || clock < 50; ++clock) {
    // Deltas, each tenth time a whole checkpoint, and now and then back to the first.
    if (clock % 10 == 0) {
      run_.SaveWhole(clock + 1);
      ASSERT_TRUE(PruneCheckpoints(*files_, "run/checkpoint", 1, /*best=*/1).ok());
    } else {
      run_.SaveDelta(clock + 1);
    }
    if (clock % 25 == 0 || clock % 25 == 3) {
      pinned = clock % 25 == 0;
      ASSERT_TRUE(model_->Use(pinned ? 1 : kNoClock).ok());
    }
    // A version that was replaced may still be asked, and then nothing is loaded.
    while (model_->step() != (pinned ? 1 : clock + 1)) model_->Look();
  }
  askers.Stop();
  EXPECT_EQ(askers.wrong(), 0u);
  const VersionFacts facts = model_->facts();
  EXPECT_GT(facts.deltas.count, 20u);
  EXPECT_GT(facts.whole.count, 5u);
  EXPECT_THAT(facts.refused, testing::Each(0u));
  std::printf("%llu answers of %lld versions, %llu deltas and %llu whole: 0 mixed\n",
              static_cast<unsigned long long>(askers.answers()), static_cast<long long>(clock),
              static_cast<unsigned long long>(facts.deltas.count),
              static_cast<unsigned long long>(facts.whole.count));
}

TEST_F(VersionsUnderLoadTest, TheFollowerTakesADeltaWithinItsInterval) {
  Mutex mutex;
  ConditionVariable changed;
  bool taken = false;
  run_.SaveWhole(1);
  Open(kLookEveryMs, [&](const std::string& what) {
    if (what.find("step 2 answers") == what.npos) return;
    MutexLock lock(mutex);
    taken = true;
    changed.notify_all();
  });
  Askers askers(*model_, 2);
  run_.SaveDelta(2);
  const int64_t began_ms = clock_->NowMs();
  {
    MutexLock lock(mutex);
    while (!taken) changed.wait(mutex);  // The deadline is the test's.
  }
  const int64_t took_ms = clock_->NowMs() - began_ms;
  EXPECT_EQ(model_->step(), 2);
  askers.Stop();
  EXPECT_EQ(askers.wrong(), 0u);
  std::printf("a delta was in the answers %lld ms after its manifest\n",
              static_cast<long long>(took_ms));
}

TEST_F(VersionsUnderLoadTest, UseWakesTheFollower) {
  Mutex mutex;
  ConditionVariable changed;
  Clock answers = kNoClock;
  run_.SaveWhole(1);
  run_.SaveWhole(2);
  // It would look again after hours.
  Open(10'000'000, [&](const std::string& what) {
    MutexLock lock(mutex);
    answers = what.find("step 1 answers") != what.npos ? 1 : 2;
    changed.notify_all();
  });
  Askers askers(*model_, 2);
  for (const Clock clock : {1, 2, 1}) {
    ASSERT_TRUE(model_->Use(clock).ok());
    MutexLock lock(mutex);
    while (answers != clock) changed.wait(mutex);
  }
  askers.Stop();
  EXPECT_EQ(askers.wrong(), 0u);
}

}  // namespace
}  // namespace hdps
