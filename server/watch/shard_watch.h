// Counts the work that a server has with each of its shards.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/membership_messages.h"

namespace hdps {

class ShardSet;
struct PlannedPush;
struct RequestPlan;

// The time of a request is divided among the shards by the keys that it has there: it costs one
// reading of the clock, and one addition a shard and table.
//
// Invariant: counts only grow, also while a shard is at another server.
class ShardWatch {
 public:
  // Sets the shards of the plans to come.
  void OnShards(std::span<const ShardId> shards);
  // Counts a request that took so long; less than 0: no clock told, and each row counts as a
  // millisecond.
  void Count(const RequestPlan& plan, int64_t took_ns);
  // Counts an update by several pushes together.
  void Count(std::span<const PlannedPush> pushes, int64_t took_ns);
  // Appends the loads of `shards`, which are those of the last OnShards().
  void AddTo(const ShardSet& shards, std::vector<ShardLoad>* loads) const;

 private:
  void AddKeys(const RequestPlan& plan);
  void Spend(int64_t took_ns);

  struct Work {
    uint64_t busy_ns = 0, rows = 0;
  };
  std::map<ShardId, Work> work_;
  std::vector<Work*> of_slot_;  // [own shards]
  std::vector<uint64_t> keys_;  // [own shards]: of the request at hand.
};

}  // namespace hdps
