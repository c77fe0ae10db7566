// Which keys of a step have their rows at the worker: asked by the reader ahead, settled by the
// trainer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/frequent_keys.h"
#include "common/base/ids.h"
#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"
#include "worker/cache/hot_keys.h"
#include "worker/model/step_parts.h"

namespace hdps {

struct Job;

// Tables that read the same features and keep as many rows: one set of hot keys serves them all.
struct HotGroup {
  std::vector<TableId> tables;
  uint64_t rows_max = 0;
};
// Of the tables that keep rows. `table_keys` as of KeyFinder.
std::vector<HotGroup> HotGroupsOf(const Job& job, const std::vector<int>& table_keys);

// The hot keys as the trainer publishes them and how often the reader saw each key. Shared by the
// two threads.
//
// Invariant: what keys() gave never changes; Publish() puts another in its place.
class HotKeyRegistry {
 public:
  // `counting`: this worker chooses, so it counts.
  HotKeyRegistry(std::vector<HotGroup> groups, bool counting);

  const std::vector<HotGroup>& groups() const { return groups_; }
  int GroupOf(TableId table) const;  // -1: its rows are not kept.

  // The reader's side.
  std::shared_ptr<const HotKeys> keys(size_t g) const HDPS_EXCLUDES(mutex_);
  void Count(size_t g, std::span<const Key> keys) HDPS_EXCLUDES(counts_mutex_);

  // The trainer's side.
  void Publish(size_t g, std::shared_ptr<const HotKeys> keys) HDPS_EXCLUDES(mutex_);
  // What was counted, which from now on counts half. One step of `stride` is counted then.
  std::vector<FrequentKeys::Counted> TakeCounts(size_t g, uint64_t stride)
      HDPS_EXCLUDES(counts_mutex_);

 private:
  struct Counts {
    std::unique_ptr<FrequentKeys> keys;  // Null: this worker does not count.
    uint64_t stride = 1, steps = 0;
  };
  const std::vector<HotGroup> groups_;
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<const HotKeys>> keys_ HDPS_GUARDED_BY(mutex_);  // [groups]
  // Counting takes long; who splits does not wait for it.
  Mutex counts_mutex_;
  std::vector<Counts> counts_ HDPS_GUARDED_BY(counts_mutex_);  // [groups]
};

// The keys of one step and one group.
struct HotSplit {
  std::shared_ptr<const HotKeys> keys;  // By which it was split.
  std::vector<uint32_t> slots;          // [keys of the step]; kNotInSlab where the row is not hot.
  std::vector<uint32_t> cold;           // Positions of those, ascending.
  uint64_t lookups = 0, hits = 0;       // Of keys as often as the examples name them.
};

// Splits the keys of every group; `*splits` keeps its memory. `executor`, which may be null, looks
// for many keys at once.
void SplitHot(const StepParts& parts, const HotKeyRegistry& registry, Executor* executor,
              std::vector<HotSplit>* splits);

}  // namespace hdps
