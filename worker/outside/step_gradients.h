// Collects what a step pulls and pushes: lists of distinct keys, and the sums of their gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "kernels/keys/unique_keys.h"
#include "kernels/row_spans.h"
#include "worker/exchange/key_split.h"
#include "worker/exchange/push_plan.h"
#include "worker/outside/table_worker.h"

namespace hdps {

class Executor;

// What is found of one list of keys, and shared by the tables that were asked for it.
struct DistinctKeys {
  std::vector<Key> keys;              // [m], by shard.
  std::vector<uint32_t> shard_begin;  // As KeysOfTable::shard_begin.
  std::vector<uint32_t> positions;    // [n]: which of `keys` each key of the list is.
};

// The distinct keys of one table, and what was pushed for them.
struct KeySums {
  TableId table;
  std::shared_ptr<const DistinctKeys> distinct;
  RowSpans<float> sums;      // [m, dim], in `own` or in the push; empty: nothing was pushed.
  std::vector<float> own;    // Memory of sums that have to be moved into the push.
  std::vector<bool> pushed;  // [m]: which keys have a gradient; empty: all, or none.

  const std::vector<Key>& keys() const { return distinct->keys; }
  bool any() const { return !sums.empty(); }
  bool whole() const { return any() && pushed.empty(); }
};

// The keys of one pull.
struct PulledList {
  uint64_t number = 0;           // Of the pull, and of the key list at the servers.
  std::vector<KeySums> tables;   // Ascending by table.
  KeySplit split;                // Of `tables`, in their order.
  std::optional<PushPlan> push;  // Its sections, if gradients are written where they are sent from.
};

// Invariant: lists() are those that were pulled in this step, in the order of the pulls. A call
// that returns an error has changed nothing.
class StepGradients {
 public:
  // `make` allocates the sections of pushes. `in_place`: gradients are written there if their keys
  // are in wire order; requires that they travel in fp32. Requires: `job` and `executor`, which may
  // be null, outlive it.
  StepGradients(const Job& job, Executor* executor, MakeBytes make, bool in_place)
      : job_(job), executor_(executor), make_(std::move(make)), in_place_(in_place) {}

  void Add(std::unique_ptr<PulledList> list) { lists_.push_back(std::move(list)); }
  // All are as those of TableWorker.
  Status Push(const PulledRows& pulled, std::span<const float> gradients);
  Status PushEach(const PulledRows& pulled, std::span<const float> gradients);
  Status Push(TableId table, std::span<const Key> keys, std::span<const float> gradients);
  // Is true if nothing was pushed but zeros.
  bool zero() const;
  const std::vector<std::unique_ptr<PulledList>>& lists() const { return lists_; }

  // Returns the list that is exactly what was pushed, so that servers know its keys already; null
  // if the keys have to be put together by Joined().
  PulledList* AsPulled();
  // Returns for each table with gradients its keys, of all lists, with their sums: those of a key
  // in several lists are added in the order of the lists.
  std::vector<KeySums> Joined();
  // Multiplies the sums by `factor`.
  void Scale(std::span<KeySums> tables, float factor) const;
  // Forgets all lists: the step is over, or given up.
  void Clear() { lists_.clear(); }
  // Bytes of gradients that were written as they came.
  uint64_t copied_bytes() const { return copied_bytes_; }

 private:
  struct OfPull {
    PulledList* list = nullptr;
    KeySums* sums = nullptr;
  };
  Result<OfPull> Find(const PulledRows& pulled);
  // Returns the memory for the sums of a table without gradients, whose values are undefined.
  RowSpans<float> Place(PulledList* list, KeySums* sums);
  // Adds a row for each position to the sums, which begin as they are, or at what leaves each float
  // as it is if `fresh`. Returns whether all sums are finite.
  bool AddEach(std::span<const uint32_t> positions, std::span<const float> rows, size_t floats,
               bool fresh, const RowSpans<float>& sums);
  Status CheckSize(TableId table, size_t keys, std::span<const float> rows) const;
  // `key_of` returns the key of a row, for the message.
  Status CheckFinite(TableId table, std::span<const float> rows,
                     const std::function<Key(size_t row)>& key_of) const;
  KeySums Join(TableId table, const std::vector<const KeySums*>& parts);
  uint32_t dim(TableId table) const;
  const std::string& name(TableId table) const;

  const Job& job_;
  Executor* const executor_;
  const MakeBytes make_;
  const bool in_place_;
  std::vector<std::unique_ptr<PulledList>> lists_;
  UniqueKeys unique_;
  std::vector<uint32_t> numbers_;  // 0, 1, ...: bags of one key each.
  uint64_t copied_bytes_ = 0;
};

// Returns the tables as a split takes them: [keys * dim].
std::vector<KeysOfTable> ListsToSplit(const Job& job, std::span<const KeySums> tables);

}  // namespace hdps
