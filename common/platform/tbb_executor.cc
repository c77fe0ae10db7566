// An executor on oneTBB: loops run in an arena, background work on one thread that may block.
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>

#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"
#include "common/platform/memory_full.h"

namespace hdps {

namespace {

namespace tbb = oneapi::tbb;

// Runs work in the order of submission. Its callers bound how much may wait.
//
// Invariant: all submitted work has run when the destructor returns.
class BackgroundThread {
 public:
  BackgroundThread() : thread_(StartThread("background", [this] { Run(); })) {}
  ~BackgroundThread() {
    {
      MutexLock lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_->Join();
  }
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  void Submit(std::function<void()> work) HDPS_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      waiting_.push_back(std::move(work));
    }
    changed_.notify_all();
  }

 private:
  void Run() {
    while (std::function<void()> work = Take()) work();
  }
  // Waits for work; returns an empty function if the executor is closing and nothing is left.
  std::function<void()> Take() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (!closing_ && waiting_.empty()) changed_.wait(mutex_);
    if (waiting_.empty()) return nullptr;
    std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    return work;
  }

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::function<void()>> waiting_ HDPS_GUARDED_BY(mutex_);
  bool closing_ HDPS_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Thread> thread_;  // Last, because it starts when everything above exists.
};

class TbbExecutor : public Executor {
 public:
  explicit TbbExecutor(int threads) : threads_(threads), arena_(threads) {}

  void ParallelFor(size_t count, const std::function<void(size_t)>& body) override {
    if (count <= 1 || threads_ == 1) {
      for (size_t i = 0; i < count; ++i) body(i);
      return;
    }
    // Orders the caller's writes before the pieces, and the pieces' writes before the return.
    // oneTBB does so already, but the thread sanitizer cannot see inside a library that was
    // compiled without it.
    std::atomic<size_t> begun{0}, done{0};
    const char* const asking = MemoryFor::Now();
    begun.store(1, std::memory_order_release);
    arena_.execute([&] {
      // Isolated: a thread that waits here takes no piece of another loop, so a body may hold a
      // lock while it runs a loop of its own.
      tbb::this_task_arena::isolate([&] {
        tbb::parallel_for(
            tbb::blocked_range<size_t>(0, count, 1),
            [&](const tbb::blocked_range<size_t>& range) {
              begun.load(std::memory_order_acquire);
              const MemoryFor same(asking);
              for (size_t i = range.begin(); i < range.end(); ++i) body(i);
              done.fetch_add(1, std::memory_order_release);
            },
            tbb::simple_partitioner());
      });
    });
    done.load(std::memory_order_acquire);
  }

  void Submit(std::function<void()> work) override { background_.Submit(std::move(work)); }
  int threads() const override { return threads_; }

 private:
  const int threads_;
  tbb::task_arena arena_;
  BackgroundThread background_;
};

}  // namespace

std::unique_ptr<Executor> NewTbbExecutor(int threads) {
  const int cores = tbb::info::default_concurrency();  // oneTBB starts no more threads than that.
  return std::make_unique<TbbExecutor>(threads > 0 ? std::min(threads, cores) : cores);
}

}  // namespace hdps
