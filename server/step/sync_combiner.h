// Collects the pushes of a step until every worker's part has arrived.
#pragma once

#include <glog/logging.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/activity.h"
#include "server/shard.h"
#include "server/vector_clock.h"

namespace hdps {

// A worker's share of a step has arrived once it has pushed all parts of it, or has sent that it
// has finished the step (it then had nothing for this server).
//
// Invariant: steps come out once each, in order of their clocks, with at most one push of each part
// a worker, in order of the workers' ranks and then of the parts. At most `clocks_max` clocks from
// next() on are held.
//
// Used only from the loop of one ServerNode.
class SyncCombiner {
 public:
  // `parts`: number of pushes of a worker for one step: see ListsOfStep().
  SyncCombiner(size_t clocks_max, uint32_t parts)
      : clocks_max_(static_cast<Clock>(clocks_max)), parts_(parts) {}

  // First clock whose step has not been taken out.
  Clock next() const { return next_; }
  bool TooFarAhead(Clock clock) const { return clock - next_ >= clocks_max_; }
  bool Holds(WorkerId worker, Clock clock, uint32_t part) const {
    const auto at = held_.find(clock);
    return at != held_.end() && at->second.contains({worker, part});
  }
  // Returns true if every part of the worker's share has been pushed.
  bool HoldsAll(WorkerId worker, Clock clock) const {
    for (uint32_t part = 0; part < parts_; ++part) {
      if (!Holds(worker, clock, part)) return false;
    }
    return true;
  }

  // Requires: clock >= next(), not TooFarAhead, not Holds, the part is below `parts`.
  void Hold(WorkerId worker, PlannedPush push) {
    const Clock clock = push.request.clock;
    CHECK(clock >= next_ && !TooFarAhead(clock)) << clock << " while at " << next_;
    const uint32_t part = push.request.part;
    CHECK_LT(part, parts_);
    CHECK(held_[clock].emplace(std::pair(worker, part), std::move(push)).second)
        << "a second push of " << clock;
  }

  struct Step {
    Clock clock = 0;
    std::vector<PlannedPush> pushes;  // In order of rank and part.
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
  const uint32_t parts_;
  Clock next_ = 0;
  std::map<Clock, std::map<std::pair<WorkerId, uint32_t>, PlannedPush>> held_;
};

}  // namespace hdps
