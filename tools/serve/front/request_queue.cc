// Keeps the work that waits in one bounded list, from which each thread takes the oldest.
#include "tools/serve/front/request_queue.h"

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/threads/pause.h"

namespace hdps {
namespace {

// Invariant: work waits only while each thread works, or while whoever is to take it has been
// woken. Of the idle threads one that waits for others to join is woken first.
class ThreadQueue : public RequestQueue {
 public:
  ThreadQueue(int threads, int64_t batch_wait_us)
      : waiting_max_(static_cast<size_t>(threads) * kWaitingOfThreadMax),
        batch_wait_ns_(batch_wait_us * 1000) {
    for (int i = 0; i < threads; ++i) {
      threads_.push_back(StartThread("answers", [this] { Run(); }));
    }
  }
  ~ThreadQueue() override { ThreadQueue::Close(); }

  bool Take(RequestWork work) override HDPS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (closed_ || waiting_.size() >= waiting_max_) return false;
    waiting_.push_back(std::move(work));
    (joining_ > 0 ? joins_ : came_).notify_one();
    return true;
  }

  void Close() override HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    closed_ = true;
    came_.notify_all();
    joins_.notify_all();
    while (!waiting_.empty() || running_ > 0) done_.wait(mutex_);
  }

 private:
  void Run() HDPS_EXCLUDES(mutex_) {
    ScoreJoiner joiner(/*joins=*/batch_wait_ns_ > 0);
    while (RequestWork work = Next()) {
      RunOne(&work, &joiner);
      if (joiner.wants_more()) Join(&joiner);
      joiner.Finish();
      MutexLock lock(mutex_);
      if (--running_ == 0 && waiting_.empty()) done_.notify_all();
    }
  }
  // What the work holds is gone before it counts as done.
  static void RunOne(RequestWork* work, ScoreJoiner* joiner) {
    (*work)(*joiner);
    *work = nullptr;
  }
  // Runs what comes in time, until no more may join.
  void Join(ScoreJoiner* joiner) HDPS_EXCLUDES(mutex_) {
    const int64_t until_ns = clock_->NowNs() + batch_wait_ns_;
    while (joiner->wants_more()) {
      RequestWork work = NextUntil(until_ns);
      if (!work) return;
      RunOne(&work, joiner);
    }
  }

  // Waits for work; returns none once the queue is closed and empty.
  RequestWork Next() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (waiting_.empty() && !closed_) came_.wait(mutex_);
    if (waiting_.empty()) return nullptr;
    ++running_;
    return TakeFirst();
  }
  RequestWork NextUntil(int64_t until_ns) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ++joining_;
    while (waiting_.empty() && !closed_) {
      const int64_t left_ns = until_ns - clock_->NowNs();
      if (left_ns <= 0) break;
      WaitFor(joins_, mutex_, left_ns);
    }
    --joining_;
    return waiting_.empty() ? nullptr : TakeFirst();
  }
  RequestWork TakeFirst() HDPS_REQUIRES(mutex_) {
    RequestWork work = std::move(waiting_.front());
    waiting_.pop_front();
    // This thread was woken for it, and may have slept while more came.
    if (!waiting_.empty()) came_.notify_one();
    return work;
  }

  const size_t waiting_max_;
  const int64_t batch_wait_ns_;
  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  Mutex mutex_;
  ConditionVariable came_, joins_, done_;
  std::deque<RequestWork> waiting_ HDPS_GUARDED_BY(mutex_);
  int running_ HDPS_GUARDED_BY(mutex_) = 0;  // Threads between Next() and the last answer.
  int joining_ HDPS_GUARDED_BY(mutex_) = 0;  // Threads in NextUntil().
  bool closed_ HDPS_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Thread>> threads_;  // The last member: they use those above.
};

}  // namespace

std::unique_ptr<RequestQueue> NewRequestQueue(int threads, int64_t batch_wait_us) {
  return std::make_unique<ThreadQueue>(threads, batch_wait_us);
}

}  // namespace hdps
