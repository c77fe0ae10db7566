// Tells up to which clock one worker's own pushes were taken at this server.
#pragma once

#include <glog/logging.h>

#include <algorithm>
#include <cstddef>
#include <set>

#include "common/base/ids.h"

namespace hdps {

// A worker sends the pull of its next step right behind its push, and the network may reorder them.
// The watermark tells the server whether the rows already hold the push. An Advance counts too,
// because a worker sends it when every earlier push was acknowledged.
//
// Invariant: next() never goes back; at most `window` clocks beyond it are remembered. A worker
// pushes once a clock and has at most `window` pushes in flight, so if there were more, the gap
// would never be filled.
//
// Used only from the loop of one ServerNode.
class PushWatermark {
 public:
  PushWatermark(Clock next, size_t window) : window_(window), next_(next) {}

  // First clock whose push may be missing: this worker's pushes of all earlier clocks were taken.
  Clock next() const { return next_; }

  void Add(Clock clock) {
    if (clock < next_) return;
    beyond_.insert(clock);
    if (beyond_.size() > window_) {
      CHECK_GE(*beyond_.begin(), next_);
      next_ = *beyond_.begin();
    }
    Close();
    CHECK_LE(beyond_.size(), window_);
  }
  void Finish(Clock clock) {
    next_ = std::max(next_, clock);
    Close();
  }

 private:
  void Close() {
    while (!beyond_.empty() && *beyond_.begin() <= next_) {
      next_ = std::max(next_, *beyond_.begin() + 1);
      beyond_.erase(beyond_.begin());
    }
  }

  size_t window_;
  Clock next_;
  std::set<Clock> beyond_;
};

}  // namespace hdps
