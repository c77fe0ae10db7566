// The dense parameters as rows of a table: their keys, and, under allreduce, the table itself.
#pragma once

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

// Weights and optimizer state of all dense tensors, kept by every worker under allreduce and
// changed by the same rule code as at the servers.
//
// Invariant: a function of what was stored and of the gradients applied since, in order; the number
// of threads does not matter. All workers of a group hold the same bits.
class DenseState {
 public:
  // `spec` is the job's dense table, `keys` those of DenseKeys().
  DenseState(const TableSpec& spec, TableId id, uint64_t seed, std::vector<Key> keys);

  const std::vector<Key>& keys() const { return keys_; }
  uint32_t row_floats() const;  // dim + state
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
  };
  // The squares of what Apply would give to the rule, before it is clipped; as at the servers.
  SquareSum Squares(Executor& executor, std::span<const float> gradients, float scale);
  void Apply(Executor& executor, std::span<const float> gradients, const Update& update);

 private:
  // Neighbouring keys; whole tensors when the rule needs them.
  struct Range {
    size_t begin = 0, end = 0;
  };
  static std::vector<Range> CutRanges(const TableSpec& spec, std::span<const Key> keys);
  std::span<const Key> KeysOf(size_t slice) const;
  TableSlice::Gradients PartOf(size_t slice, std::span<const float> gradients) const;

  const uint32_t dim_;
  const std::vector<Key> keys_;
  const std::vector<Range> ranges_;  // [slices]
  std::vector<TableSlice> slices_;
};

}  // namespace hdps
