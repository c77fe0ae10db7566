// The settings of a table: dim, initial values, update rule, admission, eviction, storage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/dtype.h"
#include "common/base/enum_words.h"
#include "common/base/shard_map.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/spec/init_spec.h"

namespace hdps {

enum class EvictBy : uint8_t { kAge, kUse, kNorm };
constexpr auto WordsOf(EvictBy) {
  using enum EvictBy;
  return EnumWords(kAge, "age", kUse, "use", kNorm, "norm");
}

// The rules by which keys of a table get a row and rows are removed. A key without a row reads as
// its initial row, and its gradients are dropped.
struct PolicySpec {
  uint32_t admit_after = 1;      // A key gets a row with its n-th update.
  double admit_probability = 1;  // And from then on with this chance at each update.
  // Counts updates of keys without a row; over all shards.
  uint64_t admit_sketch_bytes = 16u << 20;
  uint64_t evict_after_steps = 0;    // A row without an update for longer is removed; 0 for never.
  uint64_t evict_after_seconds = 0;  // The same in seconds of training; whichever comes first.
  uint64_t max_rows = 0;             // Of the table, over all shards; 0 for no limit.
  uint64_t max_bytes = 0;            // The same in bytes of rows with their state; 0 for no limit.
  EvictBy evict_by = EvictBy::kAge;  // Selects the rows to remove beyond these limits.
  bool ages() const { return evict_after_steps > 0 || evict_after_seconds > 0; }
  bool capped() const { return max_rows > 0 || max_bytes > 0; }
  friend bool operator==(const PolicySpec&, const PolicySpec&) = default;
};

// The shape of a learning rate schedule.
enum class ScheduleKind : uint8_t { kConstant, kStep, kExponential, kCosine, kPolynomial };
constexpr auto WordsOf(ScheduleKind) {
  using enum ScheduleKind;
  return EnumWords(kConstant, "constant", kStep, "step", kExponential, "exponential", kCosine,
                   "cosine", kPolynomial, "polynomial");
}
// The factor on the learning rate as a function of the step.
struct ScheduleSpec {
  ScheduleKind kind = ScheduleKind::kConstant;
  uint64_t warmup_steps = 0;  // First rises linearly from 0 to 1.
  // Steps after the warmup in which kStep and kExponential multiply the factor by `decay` once, and
  // in which the others reach their final value.
  uint64_t decay_steps = 0;
  double decay = 0.1;  // kStep, kExponential: the factor of decay_steps.
  double power = 1;    // kPolynomial
  double least = 0;    // Final value of kCosine and kPolynomial.
  friend bool operator==(const ScheduleSpec&, const ScheduleSpec&) = default;
};

// A dense tensor that is a running average over batches instead of a parameter.
struct AveragedTensor {
  uint32_t tensor = 0;    // Its number: the upper 32 bits of its keys.
  float momentum = 0.9f;  // The part of the old value that stays in each step.
  friend bool operator==(const AveragedTensor&, const AveragedTensor&) = default;
};

// Floats in a row of the dense table. A dense tensor is cut into chunks of this size. Chunk c of
// tensor t has the key (t << 32 | c), and the last chunk of a tensor is padded with zeros.
inline constexpr uint32_t kDenseChunkFloats = 1024;

// The storage format of a row's weights. The optimizer state is always stored in 32 bits.
using WeightFormat = DType;

// The cut of a table over the servers, in MindSpore's words. kBatch: keys are hashed, and each
// worker looks up its part of the batch. kField: all rows of a feature are in one shard. kRow:
// ranges of keys. kColumn: the columns of every row are cut into parts, which are rows in different
// shards.
enum class SliceMode : uint8_t { kBatch, kField, kRow, kColumn };
constexpr auto WordsOf(SliceMode) {
  using enum SliceMode;
  return EnumWords(kBatch, "batch_slice", kField, "field_slice", kRow, "table_row_slice", kColumn,
                   "table_column_slice");
}

struct TableSpec {
  std::string name;
  uint32_t dim = 16;
  OptimizerSpec optimizer;
  InitSpec init;
  bool dense = false;  // Holds the chunks of dense tensors; at most one table, the last.
  // kGroup for a dense table under LAMB, which needs whole tensors; otherwise by slice_mode.
  ShardBy shard_by = ShardBy::kKey;
  PolicySpec policy = {};         // Not used by the dense table.
  uint64_t vocab_cache_size = 0;  // Hot rows kept at every worker, on its device; 0 for none.
  WeightFormat weights = WeightFormat::kFp32;  // Not used by the dense table.
  ScheduleSpec schedule = {};                  // Schedule of the optimizer's learning rate.
  // Penalty in the loss for the rows that a step uses: loss_l1 |w| + loss_l2 w^2 / 2.
  float loss_l1 = 0, loss_l2 = 0;
  std::vector<AveragedTensor> averaged = {};  // Running averages; only in the dense table.
  // These are not used by the dense table.
  SliceMode slice_mode = SliceMode::kBatch;
  // kField: features of each slice; empty for equal slices.
  std::vector<uint32_t> manual_shapes = {};
  uint32_t column_slices = 2;  // kColumn: parts of a row; a power of two.

  // Number of server rows that make one row of the model, and their columns.
  uint32_t row_slices() const { return slice_mode == SliceMode::kColumn ? column_slices : 1; }
  uint32_t slice_dim() const { return dim / row_slices(); }
};

}  // namespace hdps
