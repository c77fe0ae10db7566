// Both wait on a condition variable.
#include "common/platform/threads/pause.h"

#include <chrono>

namespace hdps {

bool Pause::For(int64_t ms) {
  MutexLock lock(mutex_);
  changed_.wait_for(mutex_, std::chrono::milliseconds(ms), [this] { return ended_ || cut_; });
  cut_ = false;
  return !ended_;
}

void Pause::Cut() {
  MutexLock lock(mutex_);
  cut_ = true;
  changed_.notify_all();
}

void Pause::End() {
  MutexLock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void WaitFor(ConditionVariable& changed, Mutex& mutex, int64_t ns) {
  changed.wait_for(mutex, std::chrono::nanoseconds(ns));
}

}  // namespace hdps
