// Runs long work beside the loop, which is told of its end.
#pragma once

#include <functional>
#include <utility>

#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"

namespace hdps {

// Invariant: at most one piece of work runs at a time, and none outlives this object, so what
// `work` refers to must only outlive this object. While running() nothing else may touch what
// `work` touches.
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
  // Returns true once after the work has ended; never waits.
  bool TakeEnd() HDPS_EXCLUDES(mutex_);

 private:
  const std::function<void()> wake_;
  bool running_ = false;  // Used by the loop only: set by Start, cleared by TakeEnd.

  Mutex mutex_;
  ConditionVariable changed_;
  bool ended_ HDPS_GUARDED_BY(mutex_) = false;
};

}  // namespace hdps
