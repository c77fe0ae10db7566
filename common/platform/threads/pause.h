// Waits of a thread that have an end: a pause between two tries, which another thread can cut short
// or end for good, and a bounded wait for a notification.
#pragma once

#include <cstdint>

#include "common/base/thread_annotations.h"

namespace hdps {

class Pause {
 public:
  // Waits for `ms`, or until Cut(). Returns false, and at once after End(), if it was ended.
  bool For(int64_t ms) HDPS_EXCLUDES(mutex_);
  // Ends the wait at hand, or else the next one, at once.
  void Cut() HDPS_EXCLUDES(mutex_);
  void End() HDPS_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  bool ended_ HDPS_GUARDED_BY(mutex_) = false;
  bool cut_ HDPS_GUARDED_BY(mutex_) = false;
};

// Waits for a notification, at most `ns`. As with any wait, the caller looks whether what it waits
// for is there.
void WaitFor(ConditionVariable& changed, Mutex& mutex, int64_t ns) HDPS_REQUIRES(mutex);

}  // namespace hdps
