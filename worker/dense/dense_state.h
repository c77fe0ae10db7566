// The dense parameters as rows of a table: their keys and, under allreduce, the table itself, in
// host memory or on the model's device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/platform/executor.h"
#include "embedding/table.h"
#include "worker/dense/dense_runs.h"
#include "worker/model/model.h"

namespace hdps {

struct TableSpec;

// How the workers of a group hold a dense tensor.
enum class TensorHome : uint8_t {
  kEach,   // Every worker holds it and makes the same updates.
  kSplit,  // Each worker updates some chunks of it.
  kOwn,    // Each worker holds a tensor of its own (layerwise_parallel).
  kCopy,   // In a cut model: a slice that another rank holds too and represents.
};
inline constexpr size_t kTensorHomes = 4;

// Keeps weights and optimizer state of dense tensors at the workers under allreduce; updates use
// the same rule code as at the servers.
//
// Invariant: the state is a function of what was stored and of the gradients applied since, in
// order; the number of threads does not matter. All workers of a group hold the same bits of kEach
// tensors.
class DenseState {
 public:
  virtual ~DenseState() = default;
  const std::vector<Key>& keys() const { return keys_; }
  virtual uint32_t row_floats() const = 0;  // dim + state
  uint64_t state_bytes() const { return keys_.size() * (row_floats() - dim_) * sizeof(float); }
  // Set and return rows[keys * row_floats].
  virtual void Store(std::span<const float> rows) = 0;
  virtual std::vector<float> Rows() = 0;

  // Factor and step number of an update; gradients are multiplied by `scale`. `step` as for
  // UpdateRow.
  struct Update {
    float scale = 1;
    int64_t step = 1;
    UpdateTerms terms = {};
    float own_scale = 0;  // Factor of kOwn tensors; 0: they have no gradient.
  };

 protected:
  DenseState(uint32_t dim, std::vector<Key> keys) : dim_(dim), keys_(std::move(keys)) {}

  const uint32_t dim_;
  const std::vector<Key> keys_;
};

// Keeps the state in host memory, in slices of consecutive chunks; one task at a time works on a
// slice.
class HostDenseState : public DenseState {
 public:
  // `spec` is the job's dense table; `keys` are DenseKeys() or some of them, ascending within each
  // tensor, with split tensors last; homes [tensors]; empty: all are kEach.
  HostDenseState(const TableSpec& spec, TableId id, uint64_t seed, std::vector<Key> keys,
                 std::vector<TensorHome> homes = {});

  uint32_t row_floats() const override;
  void Store(std::span<const float> rows) override;
  std::vector<float> Rows() override;
  // Writes the weights to flat[keys * dim].
  void ReadWeights(Executor& executor, std::span<float> flat);
  // Returns the squares of the gradients[keys * dim] that Apply would give to the rule, before
  // clipping, as at the servers; one sum for each TensorHome.
  std::array<SquareSum, kTensorHomes> Squares(Executor& executor, std::span<const float> gradients,
                                              float scale);
  // Applies gradients[keys * dim].
  void Apply(Executor& executor, std::span<const float> gradients, const Update& update);

 private:
  // Consecutive keys of tensors with one home. If the rule needs whole tensors, a range holds whole
  // tensors, and one range all split ones.
  struct Range {
    size_t begin = 0, end = 0;
    TensorHome home = TensorHome::kEach;
  };
  static std::vector<Range> CutRanges(const TableSpec& spec, std::span<const Key> keys,
                                      const std::vector<TensorHome>& homes);
  std::span<const Key> KeysOf(size_t slice) const;
  TableSlice::Gradients PartOf(size_t slice, std::span<const float> gradients) const;

  const std::vector<Range> ranges_;  // [slices]
  std::vector<TableSlice> slices_;
};

// Keeps the state of some tensors of a model on its device: their rows, one after another. They
// cross the bus only in Store and Rows.
//
// Invariant: the model's flat array holds the weights of the rows.
class DeviceDenseState : public DenseState {
 public:
  // `tensors` are ascending numbers of the model's. Requires: `spec` and `model` outlive it, and
  // WhyDenseOnHost() gives no reason against the device.
  DeviceDenseState(const TableSpec& spec, Model& model, std::span<const uint32_t> tensors);

  bool holds(uint32_t tensor) const { return holds_[tensor]; }
  uint32_t row_floats() const override { return rows_.row_floats(); }
  void Store(std::span<const float> rows) override;
  std::vector<float> Rows() override;
  // Applies the gradients of the own tensors among those of all, [dense floats of the model] on its
  // device. They are void afterwards.
  void Apply(float* gradients, const Update& update);

 private:
  void GiveWeightsToModel();

  const TableSpec& spec_;
  Model& model_;
  std::vector<bool> holds_;           // [tensors of the model]
  const std::vector<FloatRun> runs_;  // Where the weights lie in the flat array, in their order.
  DeviceArray memory_;
  RowSlab rows_;
};

}  // namespace hdps
