// Collects what a step pulls and pushes: lists of distinct keys, and the sums of their gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "kernels/keys/unique_keys.h"
#include "worker/exchange/key_split.h"
#include "worker/outside/table_worker.h"

namespace hdps {

// The distinct keys of one table, and what was pushed for them.
struct KeySums {
  TableId table;
  std::vector<Key> keys;              // [m], by shard.
  std::vector<uint32_t> shard_begin;  // As KeysOfTable::shard_begin.
  std::vector<float> sums;            // [m, dim]; empty: nothing was pushed.
  std::vector<bool> pushed;           // [m]: which keys have a gradient; empty: all, or none.

  bool any() const { return !sums.empty(); }
  bool whole() const { return any() && pushed.empty(); }
};

// The keys of one pull.
struct PulledList {
  uint64_t number = 0;          // Of the pull, and of the key list at the servers.
  std::vector<KeySums> tables;  // Ascending by table.
  KeySplit split;               // Of `tables`, in their order.
};

// Invariant: lists() are those that were pulled in this step, in the order of the pulls. A call
// that returns an error has changed nothing.
class StepGradients {
 public:
  // Requires: `job` outlives it.
  explicit StepGradients(const Job& job) : job_(job) {}

  void Add(std::unique_ptr<PulledList> list) { lists_.push_back(std::move(list)); }
  // All are as those of TableWorker.
  Status Push(const PulledRows& pulled, std::span<const float> gradients);
  Status PushEach(const PulledRows& pulled, std::span<const float> gradients);
  Status Push(TableId table, std::span<const Key> keys, std::span<const float> gradients);
  // Is true if no gradient was pushed.
  bool empty() const;
  const std::vector<std::unique_ptr<PulledList>>& lists() const { return lists_; }

  // Returns the list that is exactly what was pushed, so that servers know its keys already; null
  // if the keys have to be put together by Joined().
  PulledList* AsPulled();
  // Returns for each table with gradients its keys, of all lists, with their sums: those of a key
  // in several lists are added in the order of the lists.
  std::vector<KeySums> Joined(Executor* executor);
  // Forgets all lists: the step is over, or given up.
  void Clear() { lists_.clear(); }

 private:
  Result<KeySums*> SumsOf(const PulledRows& pulled);
  Status CheckSize(TableId table, size_t keys, std::span<const float> rows) const;
  Status CheckFinite(TableId table, std::span<const Key> keys, std::span<const float> rows) const;
  KeySums Join(TableId table, const std::vector<const KeySums*>& parts, Executor* executor);
  uint32_t dim(TableId table) const;
  const std::string& name(TableId table) const;

  const Job& job_;
  std::vector<std::unique_ptr<PulledList>> lists_;
  UniqueKeys unique_;
};

// Returns the tables as a split takes them: [keys * dim].
std::vector<KeysOfTable> ListsToSplit(const Job& job, std::span<const KeySums> tables);

}  // namespace hdps
