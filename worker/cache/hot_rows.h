// Rows that a worker keeps on its device with their optimizer state, and what a step does to them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/spec/pooling.h"
#include "embedding/memory/update_terms.h"
#include "kernels/dense_ops.h"
#include "kernels/host/slab_update.h"
#include "worker/cache/hot_split.h"
#include "worker/cache/hot_sum.h"

namespace hdps {

struct Job;

struct HotStep {
  int64_t number = 1;             // As UpdateRow counts steps, from 1.
  StepWord mine;                  // Of this worker.
  Collective* group = nullptr;    // Null: there is one worker.
  std::span<const HotSplit> hot;  // [groups], as given to HotRows::Load().
  // [tables][keys * dim], on the device of the rows; null of a worker without examples.
  std::span<const float* const> gradients;
  UpdateTerms terms = {};
};

// Invariant: a row of a slot is what a server would hold if it had got every push of its key, and
// dirty(g)[slot] tells whether it has changed since it was last given to or taken from a server.
// Slots, not keys: HotKeys says whose they are. Of a step nothing but the slots and a word a table
// crosses the bus, and under clip_norm a number a row; no update is waited for.
//
// Belongs to the trainer's thread.
class HotRows {
 public:
  // `job` and `ops` must outlive it. Takes its memory here, rows_max rows a table.
  HotRows(const Job& job, std::vector<HotGroup> groups, DenseOps& ops);

  const std::vector<HotGroup>& groups() const { return groups_; }
  // Null for a table that keeps no rows.
  const RowSlab* slab(TableId table) const;
  uint32_t row_floats(TableId table) const { return slab(table)->row_floats(); }
  uint64_t bytes() const;  // Of all slabs: rows * (dim + state) * 4.
  // One line a table: how many rows are kept, where, of how many bytes.
  std::string Describe() const;

  // Brings the slots of a step's keys to the device; `hot` stays until the step's update.
  void Load(std::span<const HotSplit> hot);
  SlabSlots& loaded(size_t g) const { return *loaded_[g]; }
  // Only where the device's memory is the host's: fills the hot rows of the step that was loaded
  // into rows[t] [keys * dim], and leaves the others.
  void Gather(std::vector<std::vector<float>>& rows) const;
  // Updates the rows that the step touched: of all workers' gradients where there is a group.
  // kCorruption when a gradient is not finite, which a device tells with its next fetch: by the
  // next step, or by Settle(). Then the rows are of no more use.
  Result<StepWord> Apply(const HotStep& step);
  // The same in two halves, for who must know the gradients of all rows before any is clipped:
  // their sums with the penalties of the loss, and their squares; then the update.
  Result<StepWord> Sum(const HotStep& step);
  const SquareSum& squares() const { return squares_; }
  Status Update(const UpdateTerms& terms);
  // Waits for the updates so far.
  Status Settle();

  // Of the tables of a group, rows[t] [slots * row_floats], in one copy. What is put or marked as
  // clean is not dirty.
  using GroupRows = std::vector<std::vector<float>>;
  GroupRows Get(size_t g, std::span<const uint32_t> slots) const;
  void Put(size_t g, std::span<const uint32_t> slots, const GroupRows& rows);
  std::vector<uint8_t>& dirty(size_t g) { return dirty_[g]; }
  // What the slots hold is of no more use.
  void Clear();

 private:
  struct Slab {
    explicit Slab(DenseOps* ops) : memory(ops) {}
    DeviceArray memory;
    RowSlab rows;
  };
  // The gradients of a step for one table, combined.
  struct Combined {
    TableId table;
    size_t rows = 0;
    SlabSlots* slots = nullptr;
    const float* values = nullptr;  // [rows * dim]
  };

  // Fills combined_ and marks what will be changed.
  Result<StepWord> Combine(const HotStep& step);
  Result<StepWord> AddTogether(const HotStep& step);
  // The update of `combined` by its table's rule.
  RowUpdate UpdateOf(const Combined& combined, const UpdateTerms& terms) const;
  float* NotFinite(TableId table) const { return not_finite_.data() + table.value; }
  // What the last fetch told.
  Status Check() const;

  const Job& job_;
  const std::vector<HotGroup> groups_;
  DenseOps& ops_;
  std::vector<std::unique_ptr<SlabSlots>> loaded_;  // [groups], of a step.
  std::vector<std::unique_ptr<Slab>> slabs_;        // [tables]; null where none is kept.
  // Which rows have changed is known here, where their slots were found: no device is asked.
  std::vector<std::vector<uint8_t>> dirty_;  // [groups][rows_max]
  HotSum sum_;
  DeviceArray not_finite_;   // [tables]: 1 where a gradient was not.
  std::vector<float> told_;  // What was there when it was fetched.
  // Between Sum() and Update().
  std::vector<Combined> combined_;
  RowUpdate scales_;
  SquareSum squares_;
};

}  // namespace hdps
