// Hands work to the executor, and its end back to the loop.
#include "server/background_work.h"

#include <glog/logging.h>

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
    // Notify under the lock: once it is released, this object may be destroyed.
    changed_.notify_all();
    if (wake_) wake_();
  });
}

bool BackgroundWork::TakeEnd() {
  if (!running_) return false;
  MutexLock lock(mutex_);
  if (!ended_) return false;
  ended_ = false;
  running_ = false;
  return true;
}

}  // namespace hdps
