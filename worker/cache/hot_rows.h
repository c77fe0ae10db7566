// Rows that a worker keeps on its device with their optimizer state, and what a step does to them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job.h"
#include "embedding/memory/update_terms.h"
#include "kernels/dense_ops.h"
#include "worker/cache/hot_split.h"
#include "worker/cache/hot_sum.h"

namespace hdps {

// The gradients of one step for one table, [keys * dim].
struct RowGradients {
  std::span<const float> host;
  const float* device = nullptr;  // On the device of the rows; null: only on the host.
};

struct HotStep {
  int64_t number = 1;                       // As UpdateRow counts steps, from 1.
  StepWord mine;                            // Of this worker.
  Collective* group = nullptr;              // Null: there is one worker.
  std::span<const HotSplit> hot;            // [groups]
  std::span<const RowGradients> gradients;  // [tables]
  UpdateTerms terms = {};
};

// Invariant: a row of a slot is what a server would hold if it had got every push of its key, and
// dirty(g)[slot] tells whether it has changed since it was last given to or taken from a server.
// Slots, not keys: HotKeys says whose they are.
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

  // Only where the device's memory is the host's: fills the hot rows of a step into rows[t]
  // [keys * dim], and leaves the others.
  void Gather(std::span<const HotSplit> hot, std::vector<std::vector<float>>& rows) const;
  // Updates the rows that the step touched: of all workers' gradients where there is a group.
  // kCorruption when a gradient is not finite; then the rows are of no more use.
  Result<StepWord> Apply(const HotStep& step);
  // The same in two halves, for who must know the gradients of all rows before any is clipped:
  // their sums with the penalties of the loss, and their squares; then the update.
  Result<StepWord> Sum(const HotStep& step);
  const SquareSum& squares() const { return squares_; }
  Status Update(const UpdateTerms& terms);

  // rows [slots * row_floats]. What is put or marked as clean is not dirty.
  void Get(TableId table, std::span<const uint32_t> slots, std::span<float> rows) const;
  void Put(TableId table, std::span<const uint32_t> slots, std::span<const float> rows);
  std::vector<uint8_t>& dirty(size_t g) { return dirty_[g]; }

 private:
  struct Slab {
    explicit Slab(DenseOps* ops) : memory(ops) {}
    DeviceArray memory;
    RowSlab rows;
  };
  // Combined gradients of a step for one table.
  struct Summed {
    TableId table;
    std::vector<uint32_t> slots;
    std::vector<float> gradients;  // [slots * dim]: what the rule is given, but for clipping.
  };

  // Gradients of one step go as they are into the rules.
  bool Plain(const UpdateTerms& terms) const;
  Status ApplyAlone(const HotStep& step);
  Result<StepWord> ApplyTogether(const HotStep& step);
  Result<StepWord> AddTogether(const HotStep& step);
  // `values` of the host or, where given, of the device, times both scales of `update`.
  Status Keep(TableId table, std::span<const uint32_t> slots, const RowGradients& values,
              const RowUpdate& update);
  const float* OnDevice(std::span<const float> host);

  const Job& job_;
  const std::vector<HotGroup> groups_;
  DenseOps& ops_;
  std::vector<std::unique_ptr<Slab>> slabs_;  // [tables]; null where none is kept.
  std::vector<std::vector<uint8_t>> dirty_;   // [groups][rows_max]
  HotSum sum_;
  DeviceArray uploaded_;
  // Between Sum() and Update().
  std::vector<Summed> summed_;
  SquareSum squares_;
  int64_t number_ = 1;
};

}  // namespace hdps
