// Which keys of a slice get a row, and which rows leave it for good.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "common/base/ids.h"
#include "common/job/spec/table_spec.h"
#include "embedding/memory/frequency_sketch.h"

namespace hdps {

struct TableSpec;

// Floats that a policy keeps in a row, behind the optimizer's state: bits of whole numbers.
uint32_t PolicyFloats(const PolicySpec& spec);
// Floats of a table's row behind its weights: the optimizer's state, then the policy's.
uint32_t RowStateFloats(const TableSpec& spec);
// Bytes of a row in memory: weights in their format, then those floats.
size_t RowBytes(const TableSpec& spec);

// Invariant: what it decides depends on the seed and on the updates of this shard's keys, in order;
// not on servers, threads or where rows lie.
class RowPolicy {
 public:
  RowPolicy(const TableSpec& spec, TableId table, uint64_t seed, ShardId shard,
            uint32_t num_shards);

  // ---- Admission: of keys that have no row.

  bool admits_all() const { return admits_all_; }
  // Asks for what Admits will read.
  void Prefetch(Key key) const {
    if (sketch_.has_value()) sketch_->Prefetch(key);
  }
  // Whether the update of `step` gives `key` a row. In the first epoch it counts the key, once an
  // update; later ones bring the same keys again, so what was counted then decides.
  bool Admits(Key key, int64_t step, bool first_epoch = true);
  // What it has counted; null when it counts nothing.
  FrequencySketch* sketch() { return sketch_.has_value() ? &*sketch_ : nullptr; }
  const FrequencySketch* sketch() const { return sketch_.has_value() ? &*sketch_ : nullptr; }

  // ---- Eviction: at the end of a step.

  uint32_t floats() const { return floats_; }
  bool evicts() const { return spec_.evict_after_steps > 0 || spec_.capped(); }
  // Notes an update in the policy's floats of a row.
  void OnUpdate(int64_t step, std::span<float> own) const;
  // Whether the rows are to be looked through for old ones at the end of `step`. Not every step,
  // and each shard at a time of its own: a row may stay an eighth of evict_after_steps longer.
  bool LooksForOldAfter(int64_t step) const;
  bool IsOld(int64_t step, std::span<const float> own) const;
  // Rows this slice may have at the end of a step, and how many it is brought down to when it has
  // more: some less, so that it does not come to that every step.
  uint64_t max_rows() const { return max_rows_; }
  uint64_t rows_left() const { return max_rows_ - max_rows_ / 16; }
  // Those with the lowest rank leave first; among equals a hash of the key decides.
  uint64_t Rank(Key key, std::span<const float> weights, std::span<const float> own) const;

  size_t bytes() const { return sketch_.has_value() ? sketch_->bytes() : 0; }

 private:
  const PolicySpec spec_;
  const uint64_t chance_seed_;
  const uint32_t shard_;
  const bool admits_all_;
  const bool keeps_step_, keeps_uses_;
  const uint32_t floats_;
  uint64_t max_rows_ = std::numeric_limits<uint64_t>::max();
  std::optional<FrequencySketch> sketch_;
};

}  // namespace hdps
