// Where the rounds of a replayed run end, as the record of it says.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/base/shard_map.h"

namespace hdps {

// Takes the place of clocks and of signals: nothing is done by the time of day, and the job stops
// where the record says.
struct RoundScript {
  static constexpr Clock kNoStop = Clock{1} << 62;

  ShardMap shards;          // The placement of the first view.
  Clock stop_at = kNoStop;  // The job is saved and ends there.
  // [workers]: clocks at which a worker's order to train ended before that of the others,
  // ascending. It goes on at once.
  std::vector<std::vector<Clock>> stops;

  // Returns how far to send a worker that stands at `clock` in a round until `until`.
  Clock GoalOf(uint32_t worker, Clock clock, Clock until) const {
    if (worker >= stops.size()) return until;
    const auto next = std::ranges::upper_bound(stops[worker], clock);
    return next == stops[worker].end() ? until : std::min(*next, until);
  }
};

}  // namespace hdps
