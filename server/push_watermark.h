// How far one worker's own pushes have come at this server.
#pragma once

#include <glog/logging.h>

#include <algorithm>
#include <cstddef>
#include <set>

#include "common/base/ids.h"

namespace hdps {

// A worker sends the pull of its next step right behind its push, and a network may turn them
// around; by this the server knows whether the rows already hold the push. What the worker said it
// has finished counts too: it says so when every push before has been acknowledged.
//
// Invariant: next() never goes back; at most `window` clocks beyond it are remembered. A worker
// pushes once a clock and has at most that many pushes on their way, so more can only mean that the
// gap will never be filled.
//
// Belongs to one ServerNode and is used only from its loop.
class PushWatermark {
 public:
  PushWatermark(Clock next, size_t window) : window_(window), next_(next) {}

  // This worker's pushes of all clocks before it have been taken.
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
