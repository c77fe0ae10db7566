// Finds which keys of a step have their rows cached at the worker. The reader asks; the trainer
// publishes the set.
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

// Tables that read the same features and cache the same number of rows: they share one set of hot
// keys.
struct HotGroup {
  std::vector<TableId> tables;
  uint64_t rows_max = 0;
};
// Groups the tables with cached rows. `table_keys` as in KeyFinder.
std::vector<HotGroup> HotGroupsOf(const Job& job, const std::vector<int>& table_keys);

// Shares the hot keys, which the trainer publishes, and the counts of keys, which the reader makes,
// between the two threads.
//
// Invariant: a set returned by keys() never changes; Publish() replaces it.
class HotKeyRegistry {
 public:
  // `counting`: this worker counts keys, because it chooses the hot ones.
  HotKeyRegistry(std::vector<HotGroup> groups, bool counting);

  const std::vector<HotGroup>& groups() const { return groups_; }
  int GroupOf(TableId table) const;  // -1: the table has no cached rows.

  // The reader's side.
  std::shared_ptr<const HotKeys> keys(size_t g) const HDPS_EXCLUDES(mutex_);
  void Count(size_t g, std::span<const Key> keys) HDPS_EXCLUDES(counts_mutex_);

  // The trainer's side.
  void Publish(size_t g, std::shared_ptr<const HotKeys> keys) HDPS_EXCLUDES(mutex_);
  // Returns the counts and halves them. From then on one step in `stride` is counted.
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

// The keys of one step, split for one group.
struct HotSplit {
  std::shared_ptr<const HotKeys> keys;  // The hot keys that it was split by.
  std::vector<uint32_t> slots;          // [keys of the step]; kNotInSlab if the row is not cached.
  std::vector<uint32_t> cold;           // Positions of the keys that are not cached, ascending.
  uint64_t lookups = 0, hits = 0;       // Counted as often as the examples name the keys.
};

// Splits the keys of every group; `*splits` keeps its memory. `executor`, which may be null, looks
// for many keys at once.
void SplitHot(const StepParts& parts, const HotKeyRegistry& registry, Executor* executor,
              std::vector<HotSplit>* splits);

}  // namespace hdps
