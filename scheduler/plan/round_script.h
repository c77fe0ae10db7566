// Tells where a replayed run ends, as the record of it says.
#pragma once

#include "common/base/ids.h"
#include "common/base/shard_map.h"

namespace hdps {

// A replay does nothing by the time of day: its first view has the recorded owners of the shards,
// and it is saved and ends at `stop_at`.
struct RoundScript {
  static constexpr Clock kNoStop = Clock{1} << 62;

  ShardMap shards;          // The placement of the first view.
  Clock stop_at = kNoStop;  // The job is saved and ends there.
};

}  // namespace hdps
