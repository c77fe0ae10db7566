// Work that may take long, carried out beside the loop, which hears of its end.
#pragma once

#include <functional>
#include <utility>

#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"

namespace hdps {

// Invariant: at most one piece of work runs at a time, and none outlives this object: what `work`
// refers to need only outlive it too. While running() nobody else may touch what `work` touches.
class BackgroundWork {
 public:
  // `wake` is called on the other thread when work has ended; it may be empty.
  explicit BackgroundWork(std::function<void()> wake) : wake_(std::move(wake)) {}
  ~BackgroundWork();
  BackgroundWork(const BackgroundWork&) = delete;
  BackgroundWork& operator=(const BackgroundWork&) = delete;

  // Requires: not running().
  void Start(Executor& executor, std::function<void()> work);
  bool running() const { return running_; }
  // True once, when the work has ended; never waits.
  bool TakeEnd() HDPS_EXCLUDES(mutex_);

 private:
  const std::function<void()> wake_;
  bool running_ = false;  // Belongs to the loop: set by Start, cleared by TakeEnd.

  Mutex mutex_;
  ConditionVariable changed_;
  bool ended_ HDPS_GUARDED_BY(mutex_) = false;
};

}  // namespace hdps
