// The dense parameters as rows of a table: their keys, and, under allreduce, the table itself, in
// the host's memory or on the device that computes with them.
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
#include "worker/model/model.h"

namespace hdps {

struct TableSpec;

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
  virtual ~DenseState() = default;
  const std::vector<Key>& keys() const { return keys_; }
  virtual uint32_t row_floats() const = 0;  // dim + state
  uint64_t state_bytes() const { return keys_.size() * (row_floats() - dim_) * sizeof(float); }
  // Where it is: gradients are there too.
  virtual bool on_device() const = 0;

  // rows[keys * row_floats]
  virtual void Store(std::span<const float> rows) = 0;
  virtual std::vector<float> Rows() = 0;
  // flat[keys * dim]: the weights.
  virtual void ReadWeights(Executor& executor, std::span<float> flat) = 0;

  // gradients[keys * dim], times `scale`; `step` as for UpdateRow.
  struct Update {
    float scale = 1;
    int64_t step = 1;
    UpdateTerms terms = {};
    float own_scale = 0;  // Of tensors of its own; 0: they have no gradient.
  };
  // The squares of what Apply would give to the rule, before it is clipped; as at the servers. Of
  // tensors of each home. Not of a state on a device.
  virtual std::array<SquareSum, kTensorHomes> Squares(Executor& executor,
                                                      std::span<const float> gradients,
                                                      float scale) = 0;
  // On a device the gradients are of no more use behind it.
  virtual void Apply(Executor& executor, const DenseGradients& gradients, const Update& update) = 0;

 protected:
  DenseState(uint32_t dim, std::vector<Key> keys) : dim_(dim), keys_(std::move(keys)) {}

  const uint32_t dim_;
  const std::vector<Key> keys_;
};

// In the host's memory, in slices of neighbouring chunks, each touched by one task at a time.
class HostDenseState : public DenseState {
 public:
  // `spec` is the job's dense table, `keys` those of DenseKeys() or some of them, each tensor's
  // ascending, those of split tensors last; homes [tensors]; none: each has all.
  HostDenseState(const TableSpec& spec, TableId id, uint64_t seed, std::vector<Key> keys,
                 std::vector<TensorHome> homes = {});

  uint32_t row_floats() const override;
  bool on_device() const override { return false; }
  void Store(std::span<const float> rows) override;
  std::vector<float> Rows() override;
  void ReadWeights(Executor& executor, std::span<float> flat) override;
  std::array<SquareSum, kTensorHomes> Squares(Executor& executor, std::span<const float> gradients,
                                              float scale) override;
  void Apply(Executor& executor, const DenseGradients& gradients, const Update& update) override;

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

  const std::vector<Range> ranges_;  // [slices]
  std::vector<TableSlice> slices_;
};

// On the device of a model, all of whose tensors it has: their rows, one behind the other, and
// nothing of them crosses the bus but by Store, Rows and ReadWeights.
//
// Invariant: the model's flat array holds the weights of the rows.
class DeviceDenseState : public DenseState {
 public:
  // `spec` and `model` outlive it. Of a job without WhyDenseOnHost().
  DeviceDenseState(const TableSpec& spec, Model& model);

  uint32_t row_floats() const override { return rows_.row_floats(); }
  bool on_device() const override { return true; }
  void Store(std::span<const float> rows) override;
  std::vector<float> Rows() override;
  void ReadWeights(Executor& executor, std::span<float> flat) override;
  std::array<SquareSum, kTensorHomes> Squares(Executor&, std::span<const float>, float) override;
  void Apply(Executor& executor, const DenseGradients& gradients, const Update& update) override;

 private:
  void GiveWeightsToModel();

  const TableSpec& spec_;
  Model& model_;
  DeviceArray memory_;
  RowSlab rows_;
};

}  // namespace hdps
