// The dense part of a recommender: computes loss and gradients from pulled rows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/spec/init_spec.h"
#include "common/platform/executor.h"
#include "kernels/dense_ops.h"
#include "kernels/keys/unique_keys.h"
#include "kernels/row_spans.h"
#include "worker/data/batch.h"

namespace hdps {

struct Job;

// The distinct keys that a batch needs from one or more tables, and the index of each key of the
// batch among them.
struct KeySet {
  std::vector<Key> unique;  // By shard; within a shard in order of first appearance.
  // Rule by which `unique` is sorted; a table may shard by another.
  ShardBy shard_by = ShardBy::kKey;
  std::vector<uint32_t> shard_begin;  // [shards + 1]: where each shard's keys begin in `unique`.
  std::vector<std::vector<uint32_t>>
      row_index;                      // [sparse features][keys of the column] < unique.size();
                                      // empty for features the tables do not use.
  std::vector<uint32_t> field_shard;  // [unique], for tables under SliceMode::kField; else empty.
};

// Input of one table to a pass.
struct TableInput {
  const KeySet* keys = nullptr;  // Null for the dense table.
  RowSpans<const float> rows;    // [unique, dim]
  // Rows cached on the model's device, if that is not the host: `slots` [unique] gives the slab's
  // slot of each key with a cached row. For those, `rows` (one piece) is not read, and StepResult
  // does not receive the gradients. Null: no rows are cached.
  const RowSlab* slab = nullptr;
  SlabSlots* slots = nullptr;
  // [unique, dim]: destination of the gradients instead of StepResult. Requires: no slab.
  RowSpans<float> gradients = {};
};

// A dense tensor. All tensors lie in one flat array; each begins at a chunk boundary
// (kDenseChunkFloats), and the rest of its last chunk is zero.
struct DenseTensor {
  std::string name;  // "deep1.weight"
  std::vector<uint32_t> shape;
  InitSpec init;
  uint64_t uses = 1;   // As in LayerShape::Tensor.
  uint32_t layer = 0;  // Index of its layer in the job.
  size_t first_chunk = 0;
  size_t num_chunks = 0;
  size_t size() const;  // Product of the shape.
};

// Destination of a pass's dense gradients: a flat array in host memory or on the model's device.
struct DenseGradients {
  DenseGradients() = default;
  DenseGradients(std::span<float> host) : data(host.data()), size(host.size()) {}
  DenseGradients(std::vector<float>& host) : DenseGradients(std::span(host)) {}
  DenseGradients(float* there, size_t floats) : data(there), size(floats), on_device(true) {}

  float* data = nullptr;
  size_t size = 0;
  bool on_device = false;
  std::span<float> host() const {
    CHECK(!on_device);
    return {data, size};
  }
};

struct StepResult {
  double loss_sum = 0;  // Sum over the examples.
  // [tables][unique * dim]: sums over the examples; empty for tables with another destination.
  std::vector<std::vector<float>> row_gradients;
};

// Rows of the layers of a cut model, if they differ from those of the worker's own batch.
struct PassRows {
  // Batch that layers without inputs read: the rows of all workers. Null: the lane's batch.
  const Batch* sources = nullptr;
  // [layers]: number of rows of each. Empty: all have those of the batch.
  std::span<const size_t> of_layers = {};
};

// A part of a step: its input, and the destination of its results.
struct StepLane {
  const Batch* batch = nullptr;
  std::span<const TableInput> tables;
  StepResult* result = nullptr;
  DenseGradients dense_gradients;  // [dense_floats]: receives sums over the examples.
  PassRows rows = {};
};

class StepExchange;  // step_exchange.h

// Computes steps and predictions with the job's layers.
//
// Invariant: a result is a function of the inputs and the dense array and, if layers exchange
// values, of what the other lanes and workers give. It does not depend on the number of threads. On
// a CPU an example's score has the same bits beside however many others.
class Model {
 public:
  virtual ~Model() = default;
  virtual const std::vector<DenseTensor>& tensors() const = 0;
  size_t dense_floats() const;  // Size of the flat array, with whole chunks.
  // Returns the initial flat array, a function of the seed and the tensors' positions.
  std::vector<float> InitialDense(uint64_t seed) const;

  virtual void SetDense(std::span<const float> flat) = 0;
  // Returns the model's own flat array, to be written instead of calling SetDense; empty if it lies
  // on another device.
  virtual std::span<float> DenseInPlace() = 0;
  // Returns the flat array on the model's device; values that the device's ops write there take
  // effect in the next pass. Null if it lies on the host.
  virtual float* DenseOnDevice() = 0;
  // Sets some floats of the flat array, from number `begin` on.
  void SetDenseAt(size_t begin, std::span<const float> values);
  // Checks that the model can take the batch: columns as in the job's data, labels in range (0 to
  // 1, a class number, or finite). kInvalidArgument names row and value. Step and Predict require a
  // batch that passes.
  virtual Status CheckBatch(const Batch& batch) const = 0;
  // Is true if layers exchange values within a pass of a step. Then all parts of a step must be
  // given to one Step, as lanes, and every worker must make each step with the same number of
  // lanes.
  virtual bool has_exchange() const = 0;
  // Runs forward and backward for all lanes, layer by layer where values are exchanged. `exchange`
  // may be null if no layer exchanges values, or if the only lane is not to exchange any.
  // `rows_done`, if set, is called once when losses and all row gradients are complete; they do not
  // change afterwards, while the rest of the dense gradients is computed. `tensor_done`, if set, is
  // called for each tensor, from the last to the first, when the losses and all lanes' gradients of
  // the tensor are complete, including the padding of its last chunk. Both leave the bits
  // unchanged. A lane without examples gives -0.0 as each dense gradient, which changes no sum.
  // Errors come from the exchange; results are void then.
  using RowsDone = std::function<void()>;
  using TensorDone = std::function<void(uint32_t tensor)>;
  virtual Status Step(std::span<const StepLane> lanes, StepExchange* exchange,
                      const RowsDone& rows_done, const TensorDone& tensor_done) = 0;
  // The same for one lane without an exchange.
  void Step(const Batch& batch, std::span<const TableInput> tables, StepResult* result,
            const DenseGradients& dense_gradients, const RowsDone& rows_done = nullptr,
            const TensorDone& tensor_done = nullptr);
  // Returns all row gradients of a table for one lane of the last Step on the model's device,
  // [unique * dim]; null if they lie in StepResult.
  virtual const float* RowGradientsOnDevice(uint32_t table, size_t lane) const = 0;
  // Writes the examples' scores and returns the sum of the losses: see ModelLoss::Score.
  virtual Result<double> Predict(const Batch& batch, std::span<const TableInput> tables,
                                 StepExchange* exchange, const PassRows& rows,
                                 std::vector<float>* probabilities) = 0;
  double Predict(const Batch& batch, std::span<const TableInput> tables,
                 std::vector<float>* probabilities);
  // Returns what a lane of the last pass gave to the loss, [examples, width of the last layer].
  virtual std::vector<float> Logits(size_t lane) = 0;
  // The device of the model.
  virtual DenseOps& ops() = 0;
  // Returns one line per layer and table for the log: name, kind, device, shape, parameters, bytes.
  virtual std::string Describe() const = 0;
};

// Makes the model. kInvalidArgument if the device is missing, or the layers do not fit together.
// `worker`: see NewCudaOps().
Result<std::unique_ptr<Model>> NewModel(const Job& job, Executor& executor, uint32_t worker = 0);

// Finds the distinct keys of batches. Which tables share a set of keys is fixed by the job. Memory
// is kept from batch to batch.
class KeyFinder {
 public:
  // `executor`: its threads help with large batches; it must outlive the finder. Null: the caller
  // works alone.
  explicit KeyFinder(const Job& job, Executor* executor = nullptr);
  // table_keys()[t] is the index of table t's KeySet, or -1 for the dense table; tables that use
  // the same features share one.
  const std::vector<int>& table_keys() const { return table_keys_; }
  size_t num_sets() const { return set_features_.size(); }
  // Fills `*sets` [num_sets], reusing its memory.
  void Find(const Batch& batch, std::vector<KeySet>* sets);

 private:
  std::vector<int> table_keys_;                      // [tables]
  std::vector<std::vector<uint32_t>> set_features_;  // [sets][features], ascending.
  // [sets][features]; empty if not sharded by field.
  std::vector<std::vector<uint32_t>> field_shards_;
  const uint32_t num_shards_;
  Executor* const executor_;
  UniqueKeys unique_;
  std::vector<KeyColumn> columns_;  // Scratch memory of Find().
};

}  // namespace hdps
