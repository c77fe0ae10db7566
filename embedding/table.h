// One shard's slice of one table: rows by key, made by their first update, changed by one rule.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "embedding/memory/frequency_sketch.h"
#include "embedding/memory/gradient_sums.h"
#include "embedding/memory/row_store.h"
#include "embedding/memory/update_terms.h"
#include "embedding/row_copy.h"
#include "embedding/shard_memory.h"
#include "kernels/vector_width.h"

namespace hdps {

struct RowCounts;
struct TableSpec;

// A content digest that does not depend on order: the digests of disjoint sets of rows add up.
struct RowsDigest {
  uint64_t sum[2] = {0, 0};
  uint64_t rows = 0;
  void Add(const RowsDigest& other);
  void AddRow(uint64_t table_hash, Key key, std::span<const float> row);  // [dim + state]
};
// HashString() of the table's name: what its rows' digests are salted with.
uint64_t TableHash(const std::string& table_name);

// Invariant: every row is [weights | state], and what it holds depends only on the seed, on the
// table's policy and on the updates applied to its key, in order. A row comes into being with the
// first update that the policy admits, or by Store; reading makes none. What the policy keeps in a
// row stands behind the optimizer's state and counts among state_floats(). Where rows lie changes
// nothing. One task at a time uses a slice, so it has no locks.
class TableSlice {
 public:
  // `width`: no more than the machine has; it changes no bit.
  TableSlice(const TableSpec& spec, TableId id, uint64_t seed, VectorWidth width = WidestVectors());
  TableSlice(const TableSpec& spec, TableId id, uint64_t seed, const RowPlacement& home,
             VectorWidth width = WidestVectors());
  ~TableSlice();
  TableSlice(TableSlice&&) noexcept;

  const TableSpec& spec() const;
  uint32_t dim() const;
  uint32_t state_floats() const;
  size_t num_rows() const;
  size_t bytes() const;            // Of memory: rows, index, and the sketch of a policy.
  const RowStore& memory() const;  // The memory tier, to look at.
  RowCounts counters() const;      // Since the slice was made.

  // rows[keys.size() * row_floats], row_floats == dim or dim + state_floats; missing rows read as
  // their initial value and are not made. Not const: a row may change its tier on the way.
  void Read(std::span<const Key> keys, uint32_t row_floats, std::span<float> rows);
  // Of those keys whose row a step after `since_step` changed: appends their positions in `keys`,
  // ascending, and their weights, dim each. For readers who read the rows when `since_step` was the
  // last step applied.
  void ReadChanged(std::span<const Key> keys, int64_t since_step, std::vector<uint32_t>* positions,
                   std::vector<float>* weights);
  // Sets rows, as a change of `step`; row_floats == dim leaves the state at its initial value.
  void Store(std::span<const Key> keys, uint32_t row_floats, std::span<const float> rows,
             int64_t step = 0);

  // No key twice: with more than one part a repeated key adds up, alone it would be updated twice.
  using Gradients = GradientPart;
  // For every key: the gradients of `parts` added in their order, times `scale`, the penalties of
  // the table's loss added, clipped, applied once. `step` as for UpdateRow; the schedule of the
  // table counts it too. Under LAMB the keys with the same upper 32 bits are one tensor.
  void Apply(std::span<const Gradients> parts, float scale, int64_t step,
             const UpdateTerms& terms = {});
  // The squares of the gradients that Apply would give to the rule, but for clipping. Changes
  // nothing.
  SquareSum Squares(std::span<const Gradients> parts, float scale);
  // All updates of `step` were applied: rows whom the policy wants gone go. After each step.
  void EndStep(int64_t step);

  // Sums over rows fail only where the disk does.
  Result<RowsDigest> Digest() const;
  // Calls visit(keys, rows), rows[keys.size() * (dim + state_floats)], over all rows, or those that
  // changed since marked_clock(), in ascending order of their keys, `block_rows` at a time, the
  // last time fewer; a status that is not ok ends it. Holds one block and a bounded number of keys
  // in memory.
  using Visit = std::function<Status(std::span<const Key>, std::span<const float>)>;
  Status VisitRows(size_t block_rows, const Visit& visit, int64_t since = kSinceEver) const;
  Result<uint64_t> CountChanged(int64_t since) const;  // How many rows that will visit.
  // The rows that it would visit, as they are now. None where they are too many for what is left of
  // `budget`, or where some have left memory.
  std::optional<RowCopy> CopyRows(int64_t since, CopyBudget* budget) const;

  // A save holds everything as it is after `clock` steps: what changes and goes from now on is
  // known apart, for a save of only that. Requires: later updates are of steps after `clock`; the
  // mark is lost where one is not.
  void MarkSaved(int64_t clock);
  // kSinceEver: there is no mark, or what changed since it is no longer known.
  int64_t marked_clock() const;
  // Keys whose rows went since the mark, ascending. Some have a row again, which changed since.
  std::vector<Key> ErasedKeys() const;
  // Those of `keys` that have a row lose it, as the slice did that was saved.
  void Erase(std::span<const Key> keys);

  // Not ok once an update or a store met a limit of the slice: its rows are then incomplete, and
  // the message says which setting of the job would mend it.
  const Status& failure() const;

  // What the policy has counted of keys without a row: null when it counts none. It belongs to a
  // snapshot, so that a job that goes on admits as one that never stopped.
  const FrequencySketch* sketch() const;
  FrequencySketch* sketch();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hdps
