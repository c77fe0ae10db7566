// Decides which shards move so that no server is much busier than the others.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/shard_map.h"
#include "scheduler/balance/load_book.h"

namespace hdps {

// A server is too busy from this multiple of the mean on.
inline constexpr double kTooBusy = 1.3;
// A shard beyond this stays where it is: its copy would take too much memory.
inline constexpr uint64_t kMovedShardBytesMax = uint64_t{512} << 20;
// A move brings what it costs if it saves more time in this span than the job stands for it.
inline constexpr double kPaysWithinSeconds = 120;

// Returns the seconds of work of each server.
std::vector<double> BusySeconds(const ShardMap& shards, size_t servers, const WorkPeriod& work);
// Returns the largest over the mean; 0 without work.
double BusiestOverMean(const std::vector<double>& busy);

struct BalancePlan {
  ShardMap shards;
  uint32_t moved = 0;
  uint64_t bytes = 0;            // Of the moved shards.
  double before = 0, after = 0;  // BusiestOverMean(), as it was and as it would have been.
};
// Returns where shards should be, by what they cost in `work`: again and again a shard of the
// busiest server goes to the least busy one, the one that evens out both best. Returns none where
// no server is too busy, where moves help little, or where they bring less than they cost. Every
// server keeps a shard. A pure function.
std::optional<BalancePlan> PlanBalance(const ShardMap& shards, size_t servers,
                                       const WorkPeriod& work);

}  // namespace hdps
