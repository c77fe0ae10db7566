// Moves the hottest shard that fits from the busiest server to the least busy one.
#include "scheduler/balance/balance_plan.h"

#include <algorithm>
#include <numeric>

namespace hdps {
namespace {

// Even enough: no further shard moves.
constexpr double kEven = 1.05;
// Smallest gain of one shard's move, and of all moves together, in units of the mean.
constexpr double kGainOfShardMin = 0.01, kGainMin = 0.1;
constexpr uint64_t kMovedBytesMax = uint64_t{4} << 30;
// Costs of a move: the job stands so long at least, and for the changes that are sent then.
constexpr double kStandsSeconds = 0.2, kBytesPerSecond = 4e9;

// A choice is a shard to move, and the larger work of both servers afterwards; less is better.
struct Choice {
  uint32_t shard = 0;
  double larger = 0;
};

std::optional<Choice> BestShard(const ShardMap& shards, const WorkPeriod& work,
                                const std::vector<double>& busy, ServerId from, ServerId to) {
  std::optional<Choice> best;
  size_t held = 0;
  for (uint32_t s = 0; s < shards.num_shards(); ++s) {
    if (shards.owner[s] != from) continue;
    ++held;
    const double own = work.shards[s].busy_seconds;
    if (own <= 0 || work.shards[s].bytes > kMovedShardBytesMax) continue;
    const double larger = std::max(busy[from.value] - own, busy[to.value] + own);
    if (!best || larger < best->larger) best = {s, larger};
  }
  return held > 1 ? best : std::nullopt;
}

}  // namespace

std::vector<double> BusySeconds(const ShardMap& shards, size_t servers, const WorkPeriod& work) {
  std::vector<double> busy(servers, 0);
  for (uint32_t s = 0; s < shards.num_shards() && s < work.shards.size(); ++s) {
    busy[shards.owner[s].value] += work.shards[s].busy_seconds;
  }
  return busy;
}

double BusiestOverMean(const std::vector<double>& busy) {
  const double all = std::accumulate(busy.begin(), busy.end(), 0.0);
  if (all <= 0) return 0;
  return *std::ranges::max_element(busy) * static_cast<double>(busy.size()) / all;
}

std::optional<BalancePlan> PlanBalance(const ShardMap& shards, size_t servers,
                                       const WorkPeriod& work) {
  std::vector<double> busy = BusySeconds(shards, servers, work);
  BalancePlan plan{.shards = shards, .before = BusiestOverMean(busy)};
  if (servers < 2 || plan.before <= kTooBusy || work.lasted_ms <= 0) return std::nullopt;
  const double mean = std::accumulate(busy.begin(), busy.end(), 0.0) / static_cast<double>(servers);
  const double busiest_before = *std::ranges::max_element(busy);
  for (uint32_t round = 0; round < shards.num_shards(); ++round) {
    const auto busiest = std::ranges::max_element(busy), idle = std::ranges::min_element(busy);
    if (*busiest <= kEven * mean) break;
    const ServerId from{static_cast<uint32_t>(busiest - busy.begin())};
    const ServerId to{static_cast<uint32_t>(idle - busy.begin())};
    const std::optional<Choice> best = BestShard(plan.shards, work, busy, from, to);
    if (!best || *busiest - best->larger < kGainOfShardMin * mean) break;
    const ShardWork& moved = work.shards[best->shard];
    if (plan.bytes + moved.bytes > kMovedBytesMax) break;
    plan.shards.owner[best->shard] = to;
    plan.bytes += moved.bytes;
    *busiest -= moved.busy_seconds;
    *idle += moved.busy_seconds;
  }
  for (uint32_t s = 0; s < shards.num_shards(); ++s) {
    plan.moved += plan.shards.owner[s] != shards.owner[s] ? 1 : 0;
  }
  plan.after = BusiestOverMean(busy);
  const double gain = busiest_before - *std::ranges::max_element(busy);
  if (plan.moved == 0 || gain < kGainMin * mean) return std::nullopt;
  const double cost = kStandsSeconds + static_cast<double>(plan.bytes) / kBytesPerSecond;
  const double share = gain / (static_cast<double>(work.lasted_ms) / 1000);
  return share * kPaysWithinSeconds > cost ? std::optional(plan) : std::nullopt;
}

}  // namespace hdps
