// Divides the time of requests among shards.
#include "server/watch/shard_watch.h"

#include <numeric>

#include "server/request_plan.h"
#include "server/shard_set.h"

namespace hdps {
namespace {

constexpr int64_t kNsOfRowWithoutClock = 1'000'000;

}  // namespace

void ShardWatch::OnShards(std::span<const ShardId> shards) {
  of_slot_.clear();
  for (const ShardId shard : shards) of_slot_.push_back(&work_[shard]);
  keys_.assign(shards.size(), 0);
}

void ShardWatch::AddKeys(const RequestPlan& plan) {
  for (size_t p = 0; p < plan.pieces.size(); ++p) {
    keys_[p / plan.num_tables] += plan.pieces[p].num_keys;
  }
}

void ShardWatch::Spend(int64_t took_ns) {
  const uint64_t all = std::accumulate(keys_.begin(), keys_.end(), uint64_t{0});
  if (all == 0) return;
  const double share = took_ns < 0 ? static_cast<double>(kNsOfRowWithoutClock)
                                   : static_cast<double>(took_ns) / static_cast<double>(all);
  for (size_t slot = 0; slot < keys_.size(); ++slot) {
    of_slot_[slot]->rows += keys_[slot];
    of_slot_[slot]->busy_ns += static_cast<uint64_t>(share * static_cast<double>(keys_[slot]));
    keys_[slot] = 0;
  }
}

void ShardWatch::Count(const RequestPlan& plan, int64_t took_ns) {
  AddKeys(plan);
  Spend(took_ns);
}

void ShardWatch::Count(std::span<const PlannedPush> pushes, int64_t took_ns) {
  for (const PlannedPush& push : pushes) AddKeys(push.list->plan);
  Spend(took_ns);
}

void ShardWatch::AddTo(const ShardSet& shards, std::vector<ShardLoad>* loads) const {
  const std::vector<size_t> bytes = shards.BytesOfShards();
  for (size_t slot = 0; slot < of_slot_.size(); ++slot) {
    loads->push_back(
        {shards.ids()[slot], of_slot_[slot]->busy_ns, of_slot_[slot]->rows, bytes[slot]});
  }
}

}  // namespace hdps
