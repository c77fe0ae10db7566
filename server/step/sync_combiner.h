// Collects the pushes of one step until those of every worker are there.
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

// A worker's part of a step is here once it has pushed it, or has said that it has finished the
// step (then it had nothing for this server).
//
// Invariant: steps come out once each, in order of their clocks, with at most one push a worker, in
// order of the workers' ranks. At most `clocks_max` clocks from next() on are held.
//
// Belongs to one ServerNode and is used only from its loop.
class SyncCombiner {
 public:
  explicit SyncCombiner(size_t clocks_max) : clocks_max_(static_cast<Clock>(clocks_max)) {}

  // The first clock that has not been taken out.
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
    std::vector<PlannedPush> pushes;  // By rank.
  };
  // The next step, if all of it is here.
  std::optional<Step> TakeComplete(const VectorClock& clocks);

  // A checkpoint of clock `to` was loaded.
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
