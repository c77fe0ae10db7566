// Caches rows with their optimizer state on a worker's device, and updates them each step.
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
  int64_t number = 1;             // Step number of UpdateRow, from 1.
  StepVote mine;                  // This worker's vote.
  Collective* group = nullptr;    // Null: there is one worker.
  std::span<const HotSplit> hot;  // [groups], as given to HotRows::Load().
  // [tables][keys * dim], on the device of the rows; null if the worker has no examples.
  std::span<const float* const> gradients;
  UpdateTerms terms = {};
};

// Invariant: a slot's row is what a server would hold if it had received every push of its key, and
// dirty(g)[slot] tells whether it has changed since it was last written to or read from a server.
// Works on slots; HotKeys maps keys to them. Per step only the slots and one word a table cross the
// bus, and under clip_norm one number a row; updates are not waited for.
//
// Belongs to the trainer's thread.
class HotRows {
 public:
  // Requires: `job` and `ops` outlive it. Allocates its memory at once: rows_max rows a table.
  HotRows(const Job& job, std::vector<HotGroup> groups, DenseOps& ops);

  const std::vector<HotGroup>& groups() const { return groups_; }
  // Null for a table without cached rows.
  const RowSlab* slab(TableId table) const;
  uint32_t row_floats(TableId table) const { return slab(table)->row_floats(); }
  uint64_t bytes() const;  // Bytes of all slabs: rows * (dim + state) * 4.
  // Describes each table in one line: its cached rows, their place and bytes.
  std::string Describe() const;

  // Copies the slots of a step's keys to the device; `hot` must not change before the step's
  // update.
  void Load(std::span<const HotSplit> hot);
  SlabSlots& loaded(size_t g) const { return *loaded_[g]; }
  // Copies the hot rows of the loaded step into rows[t] [keys * dim]; other rows stay as they are.
  // Requires: the device's memory is the host's.
  void Gather(std::vector<std::vector<float>>& rows) const;
  // Updates the rows that the step touched with the gradients, summed over workers if there is a
  // group. kCorruption if a gradient is not finite; a device reports that with its next fetch,
  // which is the next step's or that of Settle(). The rows are void then.
  Result<StepVote> Apply(const HotStep& step);
  // The same in two halves, for clip_norm, which needs all gradients before any is clipped: Sum()
  // adds the gradients and the penalties of the loss and computes their squares; Update() follows.
  Result<StepVote> Sum(const HotStep& step);
  const SquareSum& squares() const { return squares_; }
  Status Update(const UpdateTerms& terms);
  // Waits for all updates so far.
  Status Settle();

  // Get() and Put() copy rows of a group's tables, rows[t] [slots * row_floats], in one transfer.
  // They leave dirty() alone.
  using GroupRows = std::vector<std::vector<float>>;
  GroupRows Get(size_t g, std::span<const uint32_t> slots) const;
  void Put(size_t g, std::span<const uint32_t> slots, const GroupRows& rows);
  std::vector<uint8_t>& dirty(size_t g) { return dirty_[g]; }
  // Marks the contents of all slots as void.
  void Clear();

 private:
  struct Slab {
    explicit Slab(DenseOps* ops) : memory(ops) {}
    DeviceArray memory;
    RowSlab rows;
  };
  // The combined gradients of a step for one table.
  struct Combined {
    TableId table;
    size_t rows = 0;
    SlabSlots* slots = nullptr;
    const float* values = nullptr;  // [rows * dim]
  };

  // Fills combined_ and marks the rows that will change as dirty.
  Result<StepVote> Combine(const HotStep& step);
  Result<StepVote> AddTogether(const HotStep& step);
  // Returns the update of `combined` by its table's rule.
  RowUpdate UpdateOf(const Combined& combined, const UpdateTerms& terms) const;
  float* NotFinite(TableId table) const { return not_finite_.data() + table.value; }
  // Checks the result of the last fetch.
  Status Check() const;

  const Job& job_;
  const std::vector<HotGroup> groups_;
  DenseOps& ops_;
  std::vector<std::unique_ptr<SlabSlots>> loaded_;  // [groups], slots of the loaded step.
  std::vector<std::unique_ptr<Slab>> slabs_;        // [tables]; null if no rows are cached.
  // Kept on the host, where slots are found, so that the device need not be asked.
  std::vector<std::vector<uint8_t>> dirty_;  // [groups][rows_max]
  HotSum sum_;
  DeviceArray not_finite_;   // [tables]: 1 if a gradient was not finite.
  std::vector<float> told_;  // Host copy of not_finite_ as last fetched.
  // Valid between Sum() and Update().
  std::vector<Combined> combined_;
  RowUpdate scales_;
  SquareSum squares_;
};

}  // namespace hdps
