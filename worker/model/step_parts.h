// Cuts one worker's batch into the parts of its micro-batches, and joins their gradients so that
// one worker with N parts computes the same bits as N workers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/keys/unique_keys.h"
#include "worker/data/batch.h"
#include "worker/model/model.h"

namespace hdps {

// Returns the index of the step's first row that belongs to part `part` of `num_parts`. A step need
// not begin at a multiple of num_parts.
uint32_t FirstRowOf(const Batch& batch, uint32_t part, uint32_t num_parts);

// Returns the rows of `batch` whose positions in the epoch are congruent to `part` modulo
// `num_parts`: the rows that worker `part` of `num_parts` would have read.
Batch CutBatch(const Batch& batch, uint32_t part, uint32_t num_parts);

// Returns slice `slice` of a batch of B rows: rows from slice * B / num_slices up to the next
// slice's first.
Batch SliceBatch(const Batch& batch, uint32_t slice, uint32_t num_slices);

// Returns the batch with these of its numeric columns, in this order.
Batch KeepNumbers(Batch batch, std::span<const uint32_t> columns);

// Number of parts of a worker's batch: it is first cut as if there were `micro_batches` workers
// (train.micro_batches), and then each part into slices (parallel.interleave_num), which are dealt
// out to pieces of the step (common/job/step_lists.h).
struct PartCount {
  uint32_t micro_batches = 1;
  uint32_t slices = 1;
  uint32_t pieces = 1;  // At most `slices`; 1 with several micro-batches.
  // Number of workers whose rows this batch holds; 0 if it holds only this worker's own rows. If
  // set, `worker` is this worker's index, and layers without inputs read the rows of all workers.
  uint32_t workers = 0;
  uint32_t worker = 0;
  friend bool operator==(const PartCount&, const PartCount&) = default;
};

// Joins the rows of several batches of one epoch, one batch after another.
Batch JoinBatches(std::span<const Batch> batches);

// The parts of one worker's step that have examples, each with its distinct keys, and the distinct
// keys of all parts together.
//
// Invariant: with several parts, key i of a part's set is key PositionsOfPart(...)[i] of the step;
// KeysOf() has no key twice, and keys that appear in earlier parts come first.
class StepParts {
 public:
  struct Part {
    Batch batch;
    // If the batch holds rows of all workers: those of this part, worker 0's first; the keys are
    // those of these rows.
    std::optional<Batch> of_all;
    std::vector<KeySet> sets;
    uint32_t group = 0;  // Index of its micro-batch.
    uint32_t piece = 0;  // Index of its piece; never decreases.
    const Batch& sources() const { return of_all ? *of_all : batch; }
  };

  // Cuts `batch` into at most `count` parts and finds their keys. Replaces the earlier contents and
  // reuses their memory.
  void Assign(Batch batch, const PartCount& count, KeyFinder& finder);
  void Assign(Batch batch, uint32_t micro_batches, KeyFinder& finder) {
    Assign(std::move(batch), PartCount{.micro_batches = micro_batches}, finder);
  }

  uint64_t num_examples() const { return num_examples_; }  // Examples of this worker.
  const std::vector<Part>& parts() const { return parts_; }
  // Is true if there is nothing to compute; then there are no gradients.
  bool empty() const { return parts_.empty(); }
  // Returns a part's set of keys for a table; null for the dense table.
  const KeySet* SetOf(size_t part, TableId table) const;
  // Returns the distinct keys that the step needs from a table; empty for the dense table.
  std::span<const Key> KeysOf(TableId table) const;
  // Returns where each shard's keys begin in KeysOf(table) [shards + 1]. Empty if unknown: with
  // several parts, whose merged keys are not sorted by shard, and for a table that shards by
  // another rule than the keys were sorted by.
  std::span<const uint32_t> ShardBeginOf(TableId table, ShardBy shard_by) const;

  // Returns the positions in KeysOf(table) of the keys of one of the step's key lists, ascending:
  // see PiecesOfStep(). Requires: several pieces.
  std::span<const uint32_t> PositionsOfList(size_t list, TableId table) const;

  // Returns the shard of each of KeysOf(table) under SliceMode::kField; empty for other tables.
  std::span<const uint32_t> FieldShardsOf(TableId table) const;

  // Selects a part's rows from the step's rows of one table, in the order of the part's keys.
  // Returns `rows` itself if there is a single part; otherwise `*scratch` holds the result.
  RowSpans<const float> RowsOfPart(size_t part, TableId table, uint32_t dim,
                                   const RowSpans<const float>& rows,
                                   std::vector<float>* scratch) const;

  // Selects a part's values from `values`, one per key of the step; `values` itself if there is a
  // single part.
  std::span<const uint32_t> SlotsOfPart(size_t part, TableId table,
                                        std::span<const uint32_t> values,
                                        std::vector<uint32_t>* scratch) const;

  // Returns the positions of a part's keys among those of the step; empty if there is a single
  // part.
  std::span<const uint32_t> PositionsOfPart(size_t part, TableId table) const;

  // Return true if the part is the first, or the last, of its micro-batch that has examples.
  bool BeginsGroup(size_t part) const {
    return part == 0 || parts_[part - 1].group != parts_[part].group;
  }
  bool EndsGroup(size_t part) const {
    return part + 1 == parts_.size() || parts_[part + 1].group != parts_[part].group;
  }

  // Sum over the slices of one micro-batch, until it is added to that of the step.
  struct GroupSum {
    std::vector<float> values;    // [keys of the step, dim]
    std::vector<uint32_t> begun;  // [keys of the step]: 1 if the key has values.
  };
  // Adds the row gradients of one part to those of the step. The first part with a key is copied,
  // and later ones are added; slices of a micro-batch are summed first. Must be called for the
  // parts in order, with the same `group` for all calls of a table.
  void AddRowGradients(size_t part, TableId table, uint32_t dim, std::span<const float> of_part,
                       GroupSum* group, std::span<float> sum) const;

 private:
  // Positions of one part's keys among those of the step.
  struct Positions {
    std::vector<uint32_t> at;  // [unique keys of the part]
    uint32_t begin = 0;        // Keys at positions from here on appear first in this part.
  };

  void MergeKeys();
  void ListKeys(uint32_t pieces);
  // Is true if there are several micro-batches, and one of them has several slices.
  bool nested() const {
    return positions_.size() > 1 && parts_.back().group != parts_.front().group && sliced_;
  }

  uint64_t num_examples_ = 0;
  bool sliced_ = false;
  std::vector<Part> parts_;
  std::vector<int> table_sets_;  // [tables]: index of the table's set, -1 for the dense table.
  // Used with more than one part:
  std::vector<UniqueKeys> merged_;                         // [sets]
  std::vector<std::vector<uint32_t>> merged_field_shard_;  // [sets], as KeySet::field_shard.
  std::vector<std::vector<Positions>> positions_;          // [parts][sets]
  // Used with more than one piece: [lists][sets], positions in the merged keys.
  std::vector<std::vector<std::vector<uint32_t>>> lists_;
  std::vector<uint32_t> list_of_key_;  // Scratch memory of ListKeys().
};

// Adds `part` to `sum`, element by element.
void AddGradients(std::span<const float> part, std::span<float> sum);

}  // namespace hdps
