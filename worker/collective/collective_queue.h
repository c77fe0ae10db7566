// Calls of a group that are made one after the other by a thread of their own, while the caller
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

// Of a call in a queue, from 1 on; 0: none, which is done.
struct CollectiveTicket {
  uint64_t number = 0;
};

// Invariant: calls are made in the order in which they were submitted, never two at once, and none
// behind one that failed. So ranks that submit alike call alike, and the group may be used beside
// the queue while nothing is in it.
//
// Belongs to one thread.
class CollectiveQueue {
 public:
  // On the queue's thread. What it touches is left alone until it is waited for.
  using Call = std::function<Status(Collective& group)>;

  // Both outlive the queue.
  CollectiveQueue(Collective& group, MonotonicClock& clock);
  // Calls that have not begun are dropped; one at hand is ended by Abort() of the group.
  ~CollectiveQueue();

  Collective& group() { return group_; }
  CollectiveTicket Submit(Call call) HDPS_EXCLUDES(mutex_);
  // Until the call and all before it are done; the first failure among all that were made.
  Status Wait(CollectiveTicket ticket) HDPS_EXCLUDES(mutex_);
  // For everything that was submitted.
  Status WaitForAll() HDPS_EXCLUDES(mutex_) { return Wait({submitted_}); }
  // How long calls took since the last time this was asked, those at hand not counted.
  int64_t TakeBusyNs() HDPS_EXCLUDES(mutex_);

 private:
  void MakeCalls() HDPS_EXCLUDES(mutex_);

  Collective& group_;
  MonotonicClock& clock_;
  uint64_t submitted_ = 0;

  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Call> calls_ HDPS_GUARDED_BY(mutex_);  // That have not begun.
  uint64_t done_ HDPS_GUARDED_BY(mutex_) = 0;
  bool in_call_ HDPS_GUARDED_BY(mutex_) = false;
  bool ends_ HDPS_GUARDED_BY(mutex_) = false;
  Status failure_ HDPS_GUARDED_BY(mutex_);
  int64_t busy_ns_ HDPS_GUARDED_BY(mutex_) = 0;

  const std::unique_ptr<Thread> thread_;  // Last: it uses all of the above.
};

}  // namespace hdps
