// A copy that one thread puts out and any other thread reads, without waiting for each other.
#pragma once

#include <memory>
#include <utility>

#include "common/base/thread_annotations.h"

namespace hdps {

// Invariant: a reader holds a whole copy, which never changes; the lock is held for as long as a
// pointer takes.
template <typename T>
class Published {
 public:
  void Put(std::shared_ptr<const T> next) HDPS_EXCLUDES(mutex_) {
    // The copy of before is released after the lock.
    const MutexLock lock(mutex_);
    value_.swap(next);
  }
  // Returns the last copy; null before the first.
  std::shared_ptr<const T> Get() const HDPS_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return value_;
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const T> value_ HDPS_GUARDED_BY(mutex_);
};

}  // namespace hdps
