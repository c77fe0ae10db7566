// The device tier: hot rows kept at every worker, chosen now and then, given back when others need
// them.
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

// What the tier did since the process began.
struct CacheCounters {
  uint64_t lookups = 0, hits = 0;   // Keys as often as the examples named them; those at hand.
  uint64_t rows = 0, hot_rows = 0;  // Distinct keys a step; those neither pulled nor pushed.
  uint64_t choices = 0;             // Times the hot rows were chosen.
  uint64_t swaps = 0;               // Rows brought in.
  uint64_t given_back = 0;          // Rows this worker wrote to the servers.
};
std::string Describe(const CacheCounters& counters, uint64_t bytes);

// Invariant: all workers of a view hold the same rows. Between commands the servers hold every row
// as it is: what is dirty is written back before a command that trains is answered.
//
// Belongs to the trainer's thread, but for the registry.
class DeviceCache {
 public:
  // `job` and the others must outlive it. `groups` is not empty.
  DeviceCache(const Job& job, std::vector<HotGroup> groups, DenseOps& ops, NodeChannel& channel);

  // The workers of a view, from a command on; `group` is null when there is one. Rows kept for
  // another view are forgotten. kInvalidArgument when the workers were told to keep other rows.
  Status Join(ViewId view, uint32_t rank, Collective* group);
  // Rows at the servers have changed, or will: forgets all of its own. Requires: none is dirty.
  void Forget();

  // Of the view; the reader splits by it.
  const std::shared_ptr<HotKeyRegistry>& registry() const { return registry_; }
  const HotRows& rows() const { return rows_; }
  HotRows& rows() { return rows_; }
  Collective* group() const { return group_; }

  // Whether the hot rows are to be chosen anew before the step of this clock; alike on all workers.
  bool RefreshDue() const { return steps_ >= next_refresh_; }
  // Chooses, gives back and brings in. Requires: every push of this worker has been acknowledged,
  // and no rows are on their way to it. Steps that were split before are stale() then.
  Status Refresh(Clock clock);
  // Whether a step was split by other hot keys than those of now.
  bool Stale(std::span<const HotSplit> hot) const;

  // The update of a step; see HotRows::Apply. `number` of the step is set by its clock.
  Result<StepWord> Apply(HotStep step);
  // The same in two halves: HotRows::Sum here, then rows().Update().
  Result<StepWord> Sum(HotStep step);
  // Writes this worker's part of the dirty rows to the servers, before the step of `clock`; when
  // all workers have done so, the servers hold everything.
  Status Flush(Clock clock);

  const CacheCounters& counters() const { return counters_; }
  CacheTally tally() const;

 private:
  using Changes = std::vector<std::vector<SlotChange>>;  // [groups]
  Status CheckSettings();
  Changes Choose();
  void BeginStep(HotStep* step);
  // Everybody takes what worker 0 chose. Returns when all workers have come.
  Status Agree(Changes* changes);
  // Writes those of the slots that are dirty and this worker's to write.
  Status GiveBack(Clock clock, size_t g, std::span<const uint32_t> slots);
  Status BringIn(Clock clock, size_t g, std::span<const SlotChange> changes);

  const Job& job_;
  NodeChannel& channel_;
  HotRows rows_;
  std::shared_ptr<HotKeyRegistry> registry_;
  ViewId view_;
  uint32_t rank_ = 0;
  Collective* group_ = nullptr;
  std::vector<std::shared_ptr<const HotKeys>> keys_;  // [groups]: whose rows the slots hold.
  uint64_t steps_ = 0;                                // Since the tier was empty.
  uint64_t next_refresh_ = 0;                         // In those.
  uint64_t distance_ = 0;                             // To the refresh after that.
  CacheCounters counters_;
};

}  // namespace hdps
