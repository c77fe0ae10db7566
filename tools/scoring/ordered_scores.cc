// Lets threads draw numbered batches, and puts them back in order in a window of bounded length.
#include "tools/scoring/ordered_scores.h"

#include <memory>
#include <optional>
#include <utility>

#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"
#include "common/platform/memory_full.h"

namespace hdps {
namespace {

// An outcome is a batch that was read and scored, or the error that it met.
struct Outcome {
  Status status;
  ScoredBatch scored;
  uint64_t bad_rows = 0;  // The reader's count behind it.
};

// Outcomes by number, from the next one to take on.
//
// Invariant: numbers below `drawn_` were given to threads, each once and in order; those from
// `taken_` on are in `window_`, which is never longer than its bound.
class Window {
 public:
  Window(BatchStream& batches, size_t length) : batches_(batches), window_(length) {}

  struct Drawn {
    uint64_t number = 0;
    Result<std::optional<ReadBatch>> read;
  };
  // Waits for room, and returns the next batch with its number; nothing once there is an end.
  std::optional<Drawn> Draw() HDPS_EXCLUDES(drawing_) {
    MutexLock one(drawing_);  // Batches get their numbers in the order in which they are read.
    uint64_t number = 0;
    {
      MutexLock lock(mutex_);
      while (!closed_ && drawn_ - taken_ >= window_.size()) changed_.wait(mutex_);
      if (closed_) return std::nullopt;
      number = drawn_++;
    }
    Drawn drawn{number, batches_.Next()};
    if (drawn.read.ok() && drawn.read->has_value()) return drawn;
    Close();  // Nobody else draws: what was drawn before comes to its end.
    return drawn;
  }

  void Put(uint64_t number, std::optional<Outcome> outcome) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    window_[number % window_.size()] = {true, std::move(outcome)};
    changed_.notify_all();
  }

  // Waits for the next outcome in order; nothing at the end.
  std::optional<Outcome> Take() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Place& next = window_[taken_ % window_.size()];
    while (!next.done) changed_.wait(mutex_);
    std::optional<Outcome> outcome = std::move(next.outcome);
    next = {};
    ++taken_;
    changed_.notify_all();
    return outcome;
  }

  // Lets nobody draw any more.
  void Close() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  struct Place {
    bool done = false;
    std::optional<Outcome> outcome;  // None: the end.
  };

  BatchStream& batches_;
  Mutex drawing_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<Place> window_ HDPS_GUARDED_BY(mutex_);
  uint64_t drawn_ HDPS_GUARDED_BY(mutex_) = 0, taken_ HDPS_GUARDED_BY(mutex_) = 0;
  bool closed_ HDPS_GUARDED_BY(mutex_) = false;
};

// The loop of one thread.
void ScoreDrawn(Window& window, size_t thread, const ScoreBatch& score) {
  const MemoryFor scores("the batches that are being scored (embedding_dim, model.hidden)");
  while (std::optional<Window::Drawn> drawn = window.Draw()) {
    if (drawn->read.ok() && !drawn->read->has_value()) return window.Put(drawn->number, {});
    Outcome outcome{drawn->read.status(), {}};
    if (outcome.status.ok()) {
      ReadBatch& read = **drawn->read;
      outcome.bad_rows = read.bad_rows;
      outcome.scored.batch = std::move(read.batch);
      if (outcome.scored.batch.num_examples > 0) outcome.status = score(thread, &outcome.scored);
    }
    window.Put(drawn->number, std::move(outcome));
  }
}

}  // namespace

Result<ScoreSums> ScoreInOrder(BatchStream& batches, size_t threads, const ScoreBatch& score,
                               const TakeBatch& take) {
  constexpr size_t kWaiting = 2;
  Window window(batches, threads + kWaiting);
  std::vector<std::unique_ptr<Thread>> scoring;
  for (size_t thread = 0; thread < threads; ++thread) {
    scoring.push_back(
        StartThread("scoring", [&window, &score, thread] { ScoreDrawn(window, thread, score); }));
  }
  ScoreSums sums;
  Status status;
  while (status.ok()) {
    const std::optional<Outcome> outcome = window.Take();
    if (!outcome) break;
    status = outcome->status;
    if (!status.ok()) break;
    sums.bad_rows = outcome->bad_rows;
    if (outcome->scored.batch.num_examples == 0) continue;
    sums.Add(outcome->scored.batch, outcome->scored.loss_sum);
    status = take(outcome->scored);
  }
  window.Close();
  for (const std::unique_ptr<Thread>& thread : scoring) thread->Join();
  HDPS_RETURN_IF_ERROR(status);
  return sums;
}

}  // namespace hdps
