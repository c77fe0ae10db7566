// Keeps the work that waits in one bounded list, from which each thread takes the oldest.
#include "tools/serve/front/request_queue.h"

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"

namespace hdps {
namespace {

class ThreadQueue : public RequestQueue {
 public:
  explicit ThreadQueue(int threads)
      : waiting_max_(static_cast<size_t>(threads) * kWaitingOfThreadMax) {
    for (int i = 0; i < threads; ++i) {
      threads_.push_back(StartThread("answers", [this] { Run(); }));
    }
  }
  ~ThreadQueue() override { ThreadQueue::Close(); }

  bool Take(std::function<void()> work) override HDPS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (closed_ || waiting_.size() >= waiting_max_) return false;
    waiting_.push_back(std::move(work));
    came_.notify_one();
    return true;
  }

  void Close() override HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    closed_ = true;
    came_.notify_all();
    while (!waiting_.empty() || running_ > 0) done_.wait(mutex_);
  }

 private:
  void Run() HDPS_EXCLUDES(mutex_) {
    for (;;) {
      std::function<void()> work;
      {
        MutexLock lock(mutex_);
        while (waiting_.empty() && !closed_) came_.wait(mutex_);
        if (waiting_.empty()) return;
        work = std::move(waiting_.front());
        waiting_.pop_front();
        ++running_;
      }
      work();
      work = nullptr;  // What it holds is gone before it counts as done.
      MutexLock lock(mutex_);
      if (--running_ == 0 && waiting_.empty()) done_.notify_all();
    }
  }

  const size_t waiting_max_;
  Mutex mutex_;
  ConditionVariable came_, done_;
  std::deque<std::function<void()>> waiting_ HDPS_GUARDED_BY(mutex_);
  int running_ HDPS_GUARDED_BY(mutex_) = 0;
  bool closed_ HDPS_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Thread>> threads_;  // The last member: they use those above.
};

}  // namespace

std::unique_ptr<RequestQueue> NewRequestQueue(int threads) {
  return std::make_unique<ThreadQueue>(threads);
}

}  // namespace hdps
