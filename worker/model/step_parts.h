// One worker's batch cut into the parts of its micro-batches, and their gradients put together
// again so that one worker with N parts does bit for bit what N workers do.
#pragma once

#include <cstdint>
#include <span>
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

// The parts of one worker's step that have examples, each with distinct keys of its own, and the
// keys of all of them together.
//
// Invariant: keys(s)[position(p, s)[i]] is parts[p].sets[s].unique[i]; keys(s) has no key twice,
// those of the first part first.
class StepParts {
 public:
  struct Part {
    Batch batch;
    std::vector<KeySet> sets;
  };

  // Takes `batch` into at most `num_parts` parts and finds their keys. What was there before is
  // replaced; its memory is used again.
  void Assign(Batch batch, uint32_t num_parts, KeyFinder& finder);

  uint64_t num_examples() const { return num_examples_; }
  const std::vector<Part>& parts() const { return parts_; }
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

  // Adds the row gradients of one part to those of the step: the first part that has a key is
  // copied, later ones are added. Called for the parts in order.
  void AddRowGradients(size_t part, TableId table, uint32_t dim, std::span<const float> of_part,
                       std::span<float> sum) const;

 private:
  // Where the keys of one part are among those of the step.
  struct Positions {
    std::vector<uint32_t> at;  // [unique keys of the part]
    uint32_t begin = 0;        // Positions from here on are first seen in this part.
  };

  void MergeKeys();

  uint64_t num_examples_ = 0;
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
