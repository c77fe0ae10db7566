// One worker's batch cut into the parts of its micro-batches, and their gradients put together
// again so that one worker with N parts does bit for bit what N workers do.
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

// The first of the step's rows that belongs to part `part` of `num_parts`. Steps need not begin at
// a multiple of num_parts.
uint32_t FirstRowOf(const Batch& batch, uint32_t part, uint32_t num_parts);

// The rows of `batch` at positions of the epoch congruent to `part` modulo `num_parts`: those that
// worker `part` of `num_parts` would have read.
Batch CutBatch(const Batch& batch, uint32_t part, uint32_t num_parts);

// Slice `slice` of a batch of B rows: rows slice * B / num_slices and on, up to the next slice's.
Batch SliceBatch(const Batch& batch, uint32_t slice, uint32_t num_slices);

// Into how many parts a worker's batch is cut: first as if there were so many workers
// (train.micro_batches), then each of these parts into slices (parallel.interleave_num).
struct PartCount {
  uint32_t micro_batches = 1;
  uint32_t slices = 1;
  // Other than 0: the batch has the rows of all of so many workers, of which this is number
  // `worker`, and layers without inputs read them all.
  uint32_t workers = 0;
  uint32_t worker = 0;
  friend bool operator==(const PartCount&, const PartCount&) = default;
};

// The rows of several batches of one epoch, one behind the other.
Batch JoinBatches(std::span<const Batch> batches);

// The parts of one worker's step that have examples, each with distinct keys of its own, and the
// keys of all of them together.
//
// Invariant: keys(s)[position(p, s)[i]] is parts[p].sets[s].unique[i]; keys(s) has no key twice,
// those of the first part first.
class StepParts {
 public:
  struct Part {
    Batch batch;
    // Of a batch of all workers: the rows of worker 0, 1, ...; the keys are those of these rows.
    std::optional<Batch> of_all;
    std::vector<KeySet> sets;
    uint32_t group = 0;  // The micro-batch it is of.
    const Batch& sources() const { return of_all ? *of_all : batch; }
  };

  // Takes `batch` into at most so many parts and finds their keys. What was there before is
  // replaced; its memory is used again.
  void Assign(Batch batch, const PartCount& count, KeyFinder& finder);
  void Assign(Batch batch, uint32_t micro_batches, KeyFinder& finder) {
    Assign(std::move(batch), PartCount{micro_batches, 1}, finder);
  }

  uint64_t num_examples() const { return num_examples_; }  // Of this worker.
  const std::vector<Part>& parts() const { return parts_; }
  // Nothing is computed, and there are no gradients.
  bool empty() const { return parts_.empty(); }
  // The set of keys of a part that belongs to a table; null for the dense one.
  const KeySet* SetOf(size_t part, TableId table) const;
  // The distinct keys that the step needs of a table; none of the dense one.
  std::span<const Key> KeysOf(TableId table) const;
  // Where in them the keys of each shard begin, [shards + 1]. Empty where that is not known: of
  // keys of several parts, which do not come by shard, and of a table that is sharded otherwise
  // than the one for which they were found.
  std::span<const uint32_t> ShardBeginOf(TableId table, ShardBy shard_by) const;

  // The shard of each of KeysOf(table), under SliceMode::kField; empty of other tables.
  std::span<const uint32_t> FieldShardsOf(TableId table) const;

  // rows of the step's keys of one table -> those of a part, in the order of the part's keys. With
  // a single part that is `rows` itself, otherwise `*scratch` holds them.
  RowSpans<const float> RowsOfPart(size_t part, TableId table, uint32_t dim,
                                   const RowSpans<const float>& rows,
                                   std::vector<float>* scratch) const;

  // One value a key of the step -> those of the keys of a part; with a single part `values` itself.
  std::span<const uint32_t> SlotsOfPart(size_t part, TableId table,
                                        std::span<const uint32_t> values,
                                        std::vector<uint32_t>* scratch) const;

  // Where the keys of a part are among those of the step; empty with a single part.
  std::span<const uint32_t> PositionsOfPart(size_t part, TableId table) const;

  // Whether the part is the first, or the last, of its micro-batch that has examples.
  bool BeginsGroup(size_t part) const {
    return part == 0 || parts_[part - 1].group != parts_[part].group;
  }
  bool EndsGroup(size_t part) const {
    return part + 1 == parts_.size() || parts_[part + 1].group != parts_[part].group;
  }

  // The sum over the slices of one micro-batch, until it is added to that of the step.
  struct GroupSum {
    std::vector<float> values;    // [keys of the step, dim]
    std::vector<uint32_t> begun;  // [keys of the step]: 1 where there are values.
  };
  // Adds the row gradients of one part to those of the step: the first part that has a key is
  // copied, later ones are added; of slices, those of a micro-batch first. Called for the parts in
  // order, with the same `group` for all of a table.
  void AddRowGradients(size_t part, TableId table, uint32_t dim, std::span<const float> of_part,
                       GroupSum* group, std::span<float> sum) const;

 private:
  // Where the keys of one part are among those of the step.
  struct Positions {
    std::vector<uint32_t> at;  // [unique keys of the part]
    uint32_t begin = 0;        // Positions from here on are first seen in this part.
  };

  void MergeKeys();
  // Several micro-batches, and one of them in several slices.
  bool nested() const {
    return positions_.size() > 1 && parts_.back().group != parts_.front().group && sliced_;
  }

  uint64_t num_examples_ = 0;
  bool sliced_ = false;
  std::vector<Part> parts_;
  std::vector<int> table_sets_;  // [tables]: index of the table's set, -1 for the dense table.
  // With more than one part:
  std::vector<UniqueKeys> merged_;                         // [sets]
  std::vector<std::vector<uint32_t>> merged_field_shard_;  // [sets], as KeySet::field_shard.
  std::vector<std::vector<Positions>> positions_;          // [parts][sets]
};

// sum[i] += part[i]; what the first part is copied to, later ones are added to.
void AddGradients(std::span<const float> part, std::span<float> sum);

}  // namespace hdps
