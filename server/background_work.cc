// Hands work to the executor and its end back to the loop.
#include "server/background_work.h"

#include <glog/logging.h>

#include <chrono>
#include <utility>

namespace hdps {

BackgroundWork::~BackgroundWork() {
  if (!running_) return;
  MutexLock lock(mutex_);
  while (!ended_) changed_.wait(mutex_);
}

void BackgroundWork::Start(Executor& executor, std::function<void()> work) {
  CHECK(!running_) << "one piece of work at a time";
  running_ = true;
  executor.Submit([this, work = std::move(work)] {
    work();
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.notify_all();  // Under the lock: after it, this object may be gone.
  });
}

bool BackgroundWork::TakeEnd(int64_t wait_ms) {
  if (!running_) return false;
  MutexLock lock(mutex_);
  // Woken for nothing, it only comes again sooner.
  if (!ended_ && wait_ms > 0) changed_.wait_for(mutex_, std::chrono::milliseconds(wait_ms));
  if (!ended_) return false;
  ended_ = false;
  running_ = false;
  return true;
}

}  // namespace hdps
