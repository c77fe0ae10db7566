// Collects the pushes of a step until every worker's part has arrived.
#pragma once

#include <glog/logging.h>

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/activity.h"
#include "server/shard.h"
#include "server/vector_clock.h"

namespace hdps {

// A worker's part of a step has arrived once it has pushed it, or has sent that it has finished the
// step (it then had nothing for this server).
//
// Invariant: steps come out once each, in order of their clocks, with at most one push a worker, in
// order of the workers' ranks. At most `clocks_max` clocks from next() on are held.
//
// Used only from the loop of one ServerNode.
class SyncCombiner {
 public:
  explicit SyncCombiner(size_t clocks_max) : clocks_max_(static_cast<Clock>(clocks_max)) {}

  // First clock whose step has not been taken out.
  Clock next() const { return next_; }
  bool TooFarAhead(Clock clock) const { return clock - next_ >= clocks_max_; }
  bool Holds(WorkerId worker, Clock clock) const {
    const auto at = held_.find(clock);
    return at != held_.end() && at->second.count(worker) > 0;
  }

  // Requires: clock >= next(), not TooFarAhead, not Holds.
  void Hold(WorkerId worker, PlannedPush push) {
    const Clock clock = push.request.clock;
    CHECK(clock >= next_ && !TooFarAhead(clock)) << clock << " while at " << next_;
    CHECK(held_[clock].emplace(worker, std::move(push)).second) << "a second push of " << clock;
  }

  struct Step {
    Clock clock = 0;
    std::vector<PlannedPush> pushes;  // In order of rank.
  };
  // Returns the next step if it is complete.
  std::optional<Step> TakeComplete(const VectorClock& clocks);

  // Starts again at clock `to`, after a checkpoint was loaded.
  void Reset(Clock to) {
    held_.clear();
    next_ = to;
  }

 private:
  const Clock clocks_max_;
  Clock next_ = 0;
  std::map<Clock, std::map<WorkerId, PlannedPush>> held_;
};

}  // namespace hdps
