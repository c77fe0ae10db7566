// A thread's pause between two tries, which another thread may end for good.
#pragma once

#include <cstdint>

#include "common/base/thread_annotations.h"

namespace hdps {

class Pause {
 public:
  // Stands still for so long. False, and at once, after End().
  bool For(int64_t ms) HDPS_EXCLUDES(mutex_);
  void End() HDPS_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  bool ended_ HDPS_GUARDED_BY(mutex_) = false;
};

}  // namespace hdps
