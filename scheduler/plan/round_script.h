// Tells where a replayed run ends, as the record of it says.
#pragma once

#include "common/base/ids.h"
#include "common/base/shard_map.h"

namespace hdps {

// Takes the place of clocks and of signals: nothing is done by the time of day, and the job stops
// where the record says.
struct RoundScript {
  static constexpr Clock kNoStop = Clock{1} << 62;

  ShardMap shards;          // The placement of the first view.
  Clock stop_at = kNoStop;  // The job is saved and ends there.
};

}  // namespace hdps
