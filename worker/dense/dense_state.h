// The dense parameters as rows of a table: their keys, and, under allreduce, the table itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/job/job.h"
#include "common/platform/executor.h"
#include "embedding/table.h"
#include "worker/model/model.h"

namespace hdps {

// Keys of the chunks of a model's flat dense array, in its order.
std::vector<Key> DenseKeys(const std::vector<DenseTensor>& tensors);

// How the workers of a group have a dense tensor.
enum class TensorHome : uint8_t {
  kEach,   // All have it, and make the same updates.
  kSplit,  // Each has some chunks of it.
  kOwn,    // Each has one of its own (layerwise_parallel).
  kCopy,   // Of a cut model: a slice that another rank has too, which speaks for it.
};
inline constexpr size_t kTensorHomes = 4;

// Weights and optimizer state of dense tensors, kept by the workers under allreduce and changed by
// the same rule code as at the servers.
//
// Invariant: a function of what was stored and of the gradients applied since, in order; the number
// of threads does not matter. All workers of a group hold the same bits of tensors that each has.
class DenseState {
 public:
  // `spec` is the job's dense table, `keys` those of DenseKeys() or some of them, each tensor's
  // ascending, those of split tensors last; homes [tensors]; none: each has all.
  DenseState(const TableSpec& spec, TableId id, uint64_t seed, std::vector<Key> keys,
             std::vector<TensorHome> homes = {});

  const std::vector<Key>& keys() const { return keys_; }
  uint32_t row_floats() const;  // dim + state
  uint64_t state_bytes() const { return keys_.size() * (row_floats() - dim_) * sizeof(float); }
  // rows[keys * row_floats]
  void Store(std::span<const float> rows);
  std::vector<float> Rows();

  // flat[keys * dim]: the weights.
  void ReadWeights(Executor& executor, std::span<float> flat);
  // gradients[keys * dim], times `scale`; `step` as for UpdateRow.
  struct Update {
    float scale = 1;
    int64_t step = 1;
    UpdateTerms terms = {};
    float own_scale = 0;  // Of tensors of its own; 0: they have no gradient.
  };
  // The squares of what Apply would give to the rule, before it is clipped; as at the servers. Of
  // tensors of each home.
  std::array<SquareSum, kTensorHomes> Squares(Executor& executor, std::span<const float> gradients,
                                              float scale);
  void Apply(Executor& executor, std::span<const float> gradients, const Update& update);

 private:
  // Neighbouring keys of tensors of one home; whole tensors when the rule needs them, all that are
  // split in one.
  struct Range {
    size_t begin = 0, end = 0;
    TensorHome home = TensorHome::kEach;
  };
  static std::vector<Range> CutRanges(const TableSpec& spec, std::span<const Key> keys,
                                      const std::vector<TensorHome>& homes);
  std::span<const Key> KeysOf(size_t slice) const;
  TableSlice::Gradients PartOf(size_t slice, std::span<const float> gradients) const;

  const uint32_t dim_;
  const std::vector<Key> keys_;
  const std::vector<Range> ranges_;  // [slices]
  std::vector<TableSlice> slices_;
};

}  // namespace hdps
