// Queue of collective calls, which a thread of its own makes one after another while the caller
// goes on.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "worker/collective/collective.h"

namespace hdps {

// Number of a call in a queue, from 1; 0: none, which counts as done.
struct CollectiveTicket {
  uint64_t number = 0;
};

// Invariant: calls are made in the order of their submission, one at a time, and none after one
// that failed. So ranks that submit the same calls make the same calls, and the group may be used
// directly while the queue is empty.
//
// Belongs to one thread.
class CollectiveQueue {
 public:
  // Runs on the queue's thread. The caller must not touch its data before waiting for it.
  using Call = std::function<Status(Collective& group)>;

  // Requires: both outlive the queue.
  CollectiveQueue(Collective& group, MonotonicClock& clock);
  // Drops calls that have not begun; aborts the group if one is running.
  ~CollectiveQueue();

  Collective& group() { return group_; }
  CollectiveTicket Submit(Call call) HDPS_EXCLUDES(mutex_);
  // Waits until the call and all before it are done; returns the first error of all calls so far.
  Status Wait(CollectiveTicket ticket) HDPS_EXCLUDES(mutex_);
  // Waits for all submitted calls.
  Status WaitForAll() HDPS_EXCLUDES(mutex_) { return Wait({submitted_}); }
  // Returns how long calls took since the last time this was called, without the running one.
  int64_t TakeBusyNs() HDPS_EXCLUDES(mutex_);

 private:
  void MakeCalls() HDPS_EXCLUDES(mutex_);

  Collective& group_;
  MonotonicClock& clock_;
  uint64_t submitted_ = 0;

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Call> calls_ HDPS_GUARDED_BY(mutex_);  // Calls that have not begun.
  uint64_t done_ HDPS_GUARDED_BY(mutex_) = 0;
  bool in_call_ HDPS_GUARDED_BY(mutex_) = false;
  bool ends_ HDPS_GUARDED_BY(mutex_) = false;
  Status failure_ HDPS_GUARDED_BY(mutex_);
  int64_t busy_ns_ HDPS_GUARDED_BY(mutex_) = 0;

  const std::unique_ptr<Thread> thread_;  // Last, because it uses all of the above.
};

}  // namespace hdps
