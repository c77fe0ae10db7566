// The number of steps that each worker of the view has finished, as far as this server knows.
#pragma once

#include <glog/logging.h>

#include <algorithm>
#include <map>

#include "common/base/ids.h"

namespace hdps {

// Invariant: min() never goes back except by Reset(), whichever workers join, leave or repeat
// messages. Join() admits a new worker at min(), not at zero, to keep it.
//
// Used only from the loop of one ServerNode.
class VectorClock {
 public:
  void Join(WorkerId worker) { clocks_.try_emplace(worker, min_); }

  void Leave(WorkerId worker) {
    clocks_.erase(worker);
    Raise();
  }

  // Moves `worker` up to `to`. A repeated or late message changes nothing.
  void Advance(WorkerId worker, Clock to) {
    const auto at = clocks_.find(worker);
    if (at == clocks_.end()) return;  // It left before this message arrived.
    at->second = std::max(at->second, to);
    furthest_ = std::max(furthest_, to);
    Raise();
  }

  // Sets all clocks to `to`, after a checkpoint was loaded.
  void Reset(Clock to) {
    for (auto& [worker, clock] : clocks_) clock = to;
    min_ = furthest_ = to;
  }

  Clock min() const { return min_; }
  // The highest clock since the last Reset(), also of a worker that has left.
  Clock furthest() const { return furthest_; }
  // Requires: `worker` has joined.
  Clock of(WorkerId worker) const { return clocks_.at(worker); }
  const std::map<WorkerId, Clock>& clocks() const { return clocks_; }

 private:
  void Raise() {
    if (clocks_.empty()) return;
    Clock slowest = clocks_.begin()->second;
    for (const auto& [worker, clock] : clocks_) slowest = std::min(slowest, clock);
    CHECK_GE(slowest, min_);
    min_ = slowest;
  }

  std::map<WorkerId, Clock> clocks_;
  Clock min_ = 0;
  Clock furthest_ = 0;
};

}  // namespace hdps
