// A table: its rows' width, how they begin and change, which of them stay, how they are kept.
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

// Which keys of a table get a row, and which rows leave it for good. A key without a row reads as
// its initial row, and its gradients are dropped.
struct PolicySpec {
  uint32_t admit_after = 1;                 // A key gets a row with the update that is its n-th.
  double admit_probability = 1;             // And then with this chance at each update.
  uint64_t admit_sketch_bytes = 16u << 20;  // Counts updates of keys without a row; of all shards.
  uint64_t evict_after_steps = 0;    // A row without an update for longer leaves; 0: none does.
  uint64_t max_rows = 0;             // Of the table, over all shards; 0: any number.
  uint64_t max_bytes = 0;            // The same, in bytes of rows with their state; 0: any number.
  EvictBy evict_by = EvictBy::kAge;  // Who leaves when there are more than that.
  bool capped() const { return max_rows > 0 || max_bytes > 0; }
  friend bool operator==(const PolicySpec&, const PolicySpec&) = default;
};

// How a learning rate changes with the step.
enum class ScheduleKind : uint8_t { kConstant, kStep, kExponential, kCosine, kPolynomial };
constexpr auto WordsOf(ScheduleKind) {
  using enum ScheduleKind;
  return EnumWords(kConstant, "constant", kStep, "step", kExponential, "exponential", kCosine,
                   "cosine", kPolynomial, "polynomial");
}
// What the learning rate is multiplied with at a step.
struct ScheduleSpec {
  ScheduleKind kind = ScheduleKind::kConstant;
  uint64_t warmup_steps = 0;  // First from 0 to 1, linearly.
  uint64_t decay_steps = 0;   // Behind those: kStep: between two falls. Others: the whole way.
  double decay = 0.1;         // kStep, kExponential: the factor of decay_steps.
  double power = 1;           // kPolynomial
  double least = 0;           // Where kCosine and kPolynomial end.
  friend bool operator==(const ScheduleSpec&, const ScheduleSpec&) = default;
};

// A dense tensor that is no parameter: a running average of what the batches gave.
struct AveragedTensor {
  uint32_t tensor = 0;    // Its number: the upper 32 bits of its keys.
  float momentum = 0.9f;  // What stays of the old value in one step.
  friend bool operator==(const AveragedTensor&, const AveragedTensor&) = default;
};

// Floats in a row of the dense table. A dense tensor is cut into chunks of this many; chunk c of
// tensor t has the key (t << 32 | c), and the last chunk of a tensor is filled up with zeros.
inline constexpr uint32_t kDenseChunkFloats = 1024;

// How the weights of a row are kept; the state of its rule is always kept in 32 bits.
using WeightFormat = DType;

// How a table is cut over the servers, in MindSpore's words. kBatch: every key by its hash, each
// worker looks up its part of the batch. kField: all rows of a feature in one shard. kRow: ranges
// of keys. kColumn: every row's columns in parts, each a row of its own elsewhere.
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
  bool dense = false;  // Holds the chunks of dense tensors; at most one such table, the last.
  // Of a dense table kGroup under LAMB, which needs whole tensors; of others as slice_mode says.
  ShardBy shard_by = ShardBy::kKey;
  PolicySpec policy = {};         // Not of the dense table.
  uint64_t vocab_cache_size = 0;  // Hot rows kept at every worker, on its device; 0: none.
  WeightFormat weights = WeightFormat::kFp32;  // Not of the dense table.
  ScheduleSpec schedule = {};                  // Of the optimizer's learning rate.
  // In the loss, of the rows that a step meets: loss_l1 |w| + loss_l2 w^2 / 2.
  float loss_l1 = 0, loss_l2 = 0;
  std::vector<AveragedTensor> averaged = {};  // Of the dense table.
  // Not of the dense table:
  SliceMode slice_mode = SliceMode::kBatch;
  std::vector<uint32_t> manual_shapes = {};  // kField: features of each slice; empty: evenly.
  uint32_t column_slices = 2;                // kColumn: parts of a row; a power of two.

  // Rows that the servers have for one of the model's, and their columns.
  uint32_t row_slices() const { return slice_mode == SliceMode::kColumn ? column_slices : 1; }
  uint32_t slice_dim() const { return dim / row_slices(); }
};

}  // namespace hdps
