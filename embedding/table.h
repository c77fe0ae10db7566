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

// A digest of rows that does not depend on their order: digests of disjoint sets of rows add up.
struct RowsDigest {
  uint64_t sum[2] = {0, 0};
  uint64_t rows = 0;
  void Add(const RowsDigest& other);
  void AddRow(uint64_t table_hash, Key key, std::span<const float> row);  // [dim + state]
};
// Returns HashString() of the table's name, which salts the digests of its rows.
uint64_t TableHash(const std::string& table_name);

// The rows of one table in one shard.
//
// Invariant: every row is [weights | state], and its contents depend only on the seed, on the
// table's policy and on the sequence of updates applied to its key. A row is made by the first
// update that the policy admits, or by Store; reading makes none. The policy's floats stand behind
// the optimizer's state and count among state_floats(). Where rows lie changes nothing. One task at
// a time uses a slice, so it has no locks.
class TableSlice {
 public:
  // `width` is at most what the machine has; it changes no bit of the result.
  TableSlice(const TableSpec& spec, TableId id, uint64_t seed, VectorWidth width = WidestVectors());
  TableSlice(const TableSpec& spec, TableId id, uint64_t seed, const RowPlacement& home,
             VectorWidth width = WidestVectors());
  ~TableSlice();
  TableSlice(TableSlice&&) noexcept;
  // Makes the slices of all tables of a shard. Tables with the same `first_of_group`, the number of
  // the first of them, share rows: a key has one entry of the index, under which its row holds the
  // part of each of them. Requires: they may, as TablesThatShareRows() says; updates then come
  // through ApplyJoined for all of them, and what is loaded has the same keys in each.
  static std::vector<TableSlice> OfTables(std::span<const TableSpec> tables,
                                          std::span<const uint32_t> first_of_group, uint64_t seed,
                                          const RowPlacement& home,
                                          VectorWidth width = WidestVectors());

  const TableSpec& spec() const;
  uint32_t dim() const;
  uint32_t state_floats() const;
  size_t num_rows() const;
  size_t row_bytes() const;  // Of the table's own part of a row in memory.
  // Memory of rows, index, and the sketch of a policy, and bytes on disk; of shared rows its part.
  size_t bytes() const;
  size_t disk_bytes() const;
  bool SharesRowsWith(const TableSlice& other) const;
  const RowStore& memory() const;  // The memory tier, for inspection.
  RowCounts counters() const;      // Counts since the slice was made.

  // Reads rows[keys.size() * row_floats], row_floats == dim or dim + state_floats. Missing rows
  // read as their initial value and are not made. Not const: a row may change its tier.
  void Read(std::span<const Key> keys, uint32_t row_floats, std::span<float> rows);
  // The same for several tables that share rows, under one look-up.
  struct JoinedRead {
    TableSlice* table;
    uint32_t row_floats;
    std::span<float> rows;
  };
  static void ReadJoined(std::span<const Key> keys, std::span<const JoinedRead> reads);
  // Finds those of `keys` whose rows were changed by a step after `since_step`: appends their
  // positions in `keys`, ascending, and their weights, dim each. For readers that read the rows
  // when `since_step` was the last applied step.
  void ReadChanged(std::span<const Key> keys, int64_t since_step, std::vector<uint32_t>* positions,
                   std::vector<float>* weights);
  // Sets rows, as a change of `step`; with row_floats == dim the state gets its initial value.
  void Store(std::span<const Key> keys, uint32_t row_floats, std::span<const float> rows,
             int64_t step = 0);

  // One worker's gradients. No key occurs twice: a repeated key would be added up among several
  // parts, but updated twice in a single one.
  using Gradients = GradientPart;
  // Updates every key once: adds up the gradients of `parts` in their order, multiplies by `scale`,
  // adds the penalties of the table's loss, clips and applies the rule. `step` as for UpdateRow;
  // the schedule of the table counts it too. Under LAMB the keys with the same upper 32 bits are
  // one tensor.
  void Apply(std::span<const Gradients> parts, float scale, int64_t step,
             const UpdateTerms& terms = {});
  // The same for all tables that share rows, under one look-up. Requires: the parts of each have
  // the same keys, and no rule is one of whole tensors.
  struct JoinedUpdate {
    TableSlice* table;
    std::span<const Gradients> parts;
  };
  static void ApplyJoined(std::span<const JoinedUpdate> updates, float scale, int64_t step,
                          const UpdateTerms& terms = {});
  // Returns the sum of squares of the gradients that Apply would give to the rule without clipping.
  // Changes nothing.
  SquareSum Squares(std::span<const Gradients> parts, float scale);
  // Ends a step whose updates were all applied: evicts rows by the policy. Must be called after
  // each step.
  void EndStep(int64_t step);
  // Between steps: evicts rows that no step after `last` has updated, as a change of `step`.
  // Requires: the policy evicts by age. Of tables that share rows, the first one's call serves all.
  void EvictUntil(int64_t last, int64_t step);

  // Returns the digest of all rows. Fails only if the disk does.
  Result<RowsDigest> Digest() const;
  // Calls visit(keys, rows), rows[keys.size() * (dim + state_floats)], over all rows, or over those
  // that changed after `since` (marked_clock()), in ascending order of keys, `block_rows` at a
  // time, the last time fewer. An error of a visit ends it. Holds one block and a bounded number of
  // keys in memory.
  using Visit = std::function<Status(std::span<const Key>, std::span<const float>)>;
  Status VisitRows(size_t block_rows, const Visit& visit, int64_t since = kSinceEver) const;
  Result<uint64_t> CountChanged(int64_t since) const;  // Number of rows VisitRows would visit.
  // Copies the rows that VisitRows would visit, as they are now. Returns none if they need more
  // than is left of `budget`.
  Result<std::optional<RowCopy>> CopyRows(int64_t since, CopyBudget* budget) const;
  // The rows that VisitRows would visit, as they were when BeginSave was called. Each call of
  // `visit` reads them anew, by any one thread while the slice changes.
  struct RowsOfSave {
    uint64_t num_rows;
    std::function<Status(size_t block_rows, const Visit& visit)> visit;
  };
  // Begins to keep the rows of a save beside those that change, on disk and until the result is
  // dropped. `clock`: as for MarkSaved. Returns none if rows of the slice cannot leave memory, or
  // while an earlier save's are kept.
  std::optional<RowsOfSave> BeginSave(int64_t clock, int64_t since) const;

  // Notes that a save holds everything as it is after `clock` steps. Later changes and removals are
  // tracked for a delta. Requires: later updates belong to steps after `clock`; an update of an
  // earlier step loses the mark.
  void MarkSaved(int64_t clock);
  // Returns the clock of the last mark; kSinceEver if there is none or it was lost.
  int64_t marked_clock() const;
  // Returns the keys whose rows were removed since the mark, ascending. Some may have a row again,
  // which then counts as changed.
  std::vector<Key> ErasedKeys() const;
  // The same for rows that move to another server while updates go on: MarkMove() notes that a copy
  // holds the rows as they are. Every later update belongs to a step after `clock`; earlier ones
  // may, and their rows then count as changed too. Saves and moves do not know of each other.
  void MarkMove(int64_t clock);
  int64_t move_clock() const;
  std::vector<Key> ErasedSinceMove() const;
  // Removes the rows of `keys` where there are any, to repeat the removals of a saved slice. Of
  // tables that share rows, the first one's call removes them for all.
  void Erase(std::span<const Key> keys);
  // Returns whether Store and Erase were given the same keys, and the policy's floats of the same
  // rows, for each of the tables that share rows with this one. If not, some rows have parts that
  // were never stored, or would not be evicted together.
  bool KeysAgree() const;

  // Is not ok once an update or a store met a limit of the slice: its rows are then incomplete. The
  // message names the setting of the job that would help.
  const Status& failure() const;

  // The policy's counts of keys; null if it counts none. They are part of a snapshot, so that a
  // resumed job admits the same keys as one that never stopped.
  const FrequencySketch* sketch() const;
  FrequencySketch* sketch();

 private:
  struct Impl;
  explicit TableSlice(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hdps
