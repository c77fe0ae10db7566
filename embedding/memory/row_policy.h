// Decides which keys of a slice get a row, and which rows are evicted for good.
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

// Returns the number of floats that a policy keeps in a row behind the optimizer's state. Their
// bits hold integers.
uint32_t PolicyFloats(const PolicySpec& spec);
// Returns which of them counts the row's uses; none if the policy counts none.
std::optional<uint32_t> UsesFloat(const PolicySpec& spec);
// Returns the floats of a row behind its weights: the optimizer's state, then the policy's.
uint32_t RowStateFloats(const TableSpec& spec);
// Returns the bytes of a row in memory: weights in their format, then those floats.
size_t RowBytes(const TableSpec& spec);

// The admission and eviction policy of one slice.
//
// Invariant: decisions depend only on the seed and on the sequence of updates of this shard's keys,
// not on servers, threads or where rows lie.
class RowPolicy {
 public:
  RowPolicy(const TableSpec& spec, TableId table, uint64_t seed, ShardId shard,
            uint32_t num_shards);

  // ---- Admission: for keys without a row.

  bool admits_all() const { return admits_all_; }
  // Prefetches what Admits will read.
  void Prefetch(Key key) const {
    if (sketch_.has_value()) sketch_->Prefetch(key);
  }
  // Returns whether the update of `step` gives `key` a row. Counts the key once an update in the
  // first epoch only; later epochs bring the same keys again, so the counts of the first decide.
  bool Admits(Key key, int64_t step, bool first_epoch = true);
  // Returns the counts; null if the policy counts nothing.
  FrequencySketch* sketch() { return sketch_.has_value() ? &*sketch_ : nullptr; }
  const FrequencySketch* sketch() const { return sketch_.has_value() ? &*sketch_ : nullptr; }

  // ---- Eviction: at the end of a step.

  uint32_t floats() const { return floats_; }
  bool evicts() const { return spec_.evict_after_steps > 0 || spec_.capped(); }
  // Notes an update in the row's policy floats.
  void OnUpdate(int64_t step, std::span<float> own) const;
  // Returns whether to look for old rows at the end of `step`. It is not every step, and differs
  // between shards, so a row may stay an eighth of evict_after_steps longer.
  bool LooksForOldAfter(int64_t step) const;
  bool IsOld(int64_t step, std::span<const float> own) const;
  // Returns the step of the row's last update. Requires: the policy evicts by age.
  static int64_t LastStep(std::span<const float> own);
  // Number of rows that this slice may have at the end of a step, and the number to which it is cut
  // down when it has more: somewhat fewer, so that rows are not evicted every step.
  uint64_t max_rows() const { return max_rows_; }
  uint64_t rows_left() const { return max_rows_ - max_rows_ / 16; }
  // Returns the row's rank: rows with the lowest rank are evicted first; among equals a hash of the
  // key decides.
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
