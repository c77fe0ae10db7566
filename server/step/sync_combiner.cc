// Decides when a step is complete.
#include "server/step/sync_combiner.h"

#include <algorithm>
#include <utility>

namespace hdps {

std::optional<SyncCombiner::Step> SyncCombiner::TakeComplete(const VectorClock& clocks) {
  // Skip steps that every worker has finished without a push for this server.
  const Clock first_held = held_.empty() ? clocks.min() : held_.begin()->first;
  next_ = std::max(next_, std::min(first_held, clocks.min()));
  const auto at = held_.find(next_);
  if (at == held_.end()) return std::nullopt;
  for (const auto& [worker, clock] : clocks.clocks()) {
    if (clock <= next_ && !HoldsAll(worker, next_)) return std::nullopt;
  }
  Step step{.clock = next_, .pushes = {}};
  for (auto& [key, push] : at->second) step.pushes.push_back(std::move(push));
  held_.erase(at);
  ++next_;
  return step;
}

}  // namespace hdps
