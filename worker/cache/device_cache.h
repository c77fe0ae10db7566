// Caches hot rows at every worker: the set is chosen from time to time, and rows are written back
// to the servers when other processes need them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/cache/hot_rows.h"
#include "worker/cache/hot_split.h"
#include "worker/exchange/node_channel.h"

namespace hdps {

struct CacheTally;
struct Job;

// Counts the work of the cache since the process began.
struct CacheCounters {
  // Keys counted as often as the examples name them; how many were cached.
  uint64_t lookups = 0, hits = 0;
  // Distinct keys per step; how many were neither pulled nor pushed.
  uint64_t rows = 0, hot_rows = 0;
  uint64_t choices = 0;     // Times the hot rows were chosen.
  uint64_t swaps = 0;       // Rows brought into the cache.
  uint64_t given_back = 0;  // Rows that this worker wrote to the servers.
};
std::string Describe(const CacheCounters& counters, uint64_t bytes);

// Invariant: all workers of a view cache the same rows with the same values. Between commands the
// servers hold the current value of every row: dirty rows are written back before a command that
// trains is answered.
//
// Belongs to the trainer's thread, except the registry.
class DeviceCache {
 public:
  // Requires: all arguments outlive it; `groups` is not empty.
  DeviceCache(const Job& job, std::vector<HotGroup> groups, DenseOps& ops, NodeChannel& channel);

  // Joins the workers of a view before a command; `group` is null if there is one worker. Rows
  // cached for another view are dropped. kInvalidArgument: the workers' cache settings differ.
  Status Join(ViewId view, uint32_t rank, Collective* group);
  // Drops all cached rows, because those at the servers have changed or will. Requires: none is
  // dirty.
  void Forget();

  // The registry of the view, by which the reader splits keys.
  const std::shared_ptr<HotKeyRegistry>& registry() const { return registry_; }
  const HotRows& rows() const { return rows_; }
  HotRows& rows() { return rows_; }
  Collective* group() const { return group_; }

  // Returns true if the hot rows are due to be chosen again before the next step; the same on all
  // workers.
  bool RefreshDue() const { return steps_ >= next_refresh_; }
  // Chooses the hot rows, writes back those that leave, and reads those that come. Requires: every
  // push of this worker has been acknowledged, and it has no pull outstanding. Steps that were
  // split before are Stale() afterwards.
  Status Refresh(Clock clock);
  // Returns true if a step was split by other hot keys than the current ones.
  bool Stale(std::span<const HotSplit> hot) const;

  // Updates the hot rows with the gradients of a step; see HotRows::Apply. The caller sets the
  // step's `number` from its clock.
  Result<StepVote> Apply(HotStep step);
  // The same in two halves: this is HotRows::Sum; rows().Update() follows.
  Result<StepVote> Sum(HotStep step);
  // Writes this worker's share of the dirty rows to the servers, before the step of `clock`. Once
  // all workers have done so, the servers hold every row.
  Status Flush(Clock clock);

  const CacheCounters& counters() const { return counters_; }
  CacheTally tally() const;

 private:
  using Changes = std::vector<std::vector<SlotChange>>;  // [groups]
  Status CheckSettings();
  Changes Choose();
  void BeginStep(HotStep* step);
  // Makes all workers take the changes that worker 0 chose. Returns when all have called it.
  Status Agree(Changes* changes);
  // Writes those of the slots that are dirty and belong to this worker's share.
  Status GiveBack(Clock clock, size_t g, std::span<const uint32_t> slots);
  Status BringIn(Clock clock, size_t g, std::span<const SlotChange> changes);

  const Job& job_;
  NodeChannel& channel_;
  HotRows rows_;
  std::shared_ptr<HotKeyRegistry> registry_;
  ViewId view_;
  uint32_t rank_ = 0;
  Collective* group_ = nullptr;
  std::vector<std::shared_ptr<const HotKeys>> keys_;  // [groups]: keys whose rows the slots hold.
  uint64_t steps_ = 0;                                // Steps since the cache was empty.
  uint64_t next_refresh_ = 0;  // Step of the next refresh, counted as steps_.
  uint64_t distance_ = 0;      // Steps from the next refresh to the one after.
  CacheCounters counters_;
};

}  // namespace hdps
