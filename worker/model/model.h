// The dense side of a recommender: from pulled rows to loss and gradients.
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

// The distinct keys that a batch needs of one or more tables, and where each key of the batch is
// among them.
struct KeySet {
  std::vector<Key> unique;            // By shard; within one in order of first sight.
  ShardBy shard_by = ShardBy::kKey;   // By which they come: a table's own may differ.
  std::vector<uint32_t> shard_begin;  // [shards + 1]: where in `unique` each shard's keys begin.
  std::vector<std::vector<uint32_t>>
      row_index;                      // [sparse features][keys of the column] < unique.size();
                                      // empty for features the tables do not use.
  std::vector<uint32_t> field_shard;  // [unique] of tables under SliceMode::kField; else empty.
};

// What one table gives to a batch.
struct TableInput {
  const KeySet* keys = nullptr;  // Null for the dense table.
  RowSpans<const float> rows;    // [unique, dim]
  // Rows kept on the model's device, when it is not the host: `slots` [unique] says which keys have
  // a row in the slab. What stands in `rows`, one piece, for those is not read, and StepResult does
  // not get their gradients. Null: none.
  const RowSlab* slab = nullptr;
  SlabSlots* slots = nullptr;
  // [unique, dim]: where the gradients are to be, instead of in StepResult. Without a slab.
  RowSpans<float> gradients = {};
};

// One dense tensor. All tensors lie in one flat array, each from a chunk boundary on
// (kDenseChunkFloats); the rest of its last chunk is zero.
struct DenseTensor {
  std::string name;  // "deep1.weight"
  std::vector<uint32_t> shape;
  InitSpec init;
  uint64_t uses = 1;   // As in LayerShape::Tensor.
  uint32_t layer = 0;  // That has it, as a position among the job's.
  size_t first_chunk = 0;
  size_t num_chunks = 0;
  size_t size() const;  // Product of the shape.
};

// A flat array of gradients of dense tensors, where a pass is to put them: in the host's memory, or
// in that of the model's device.
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
  double loss_sum = 0;  // Over the examples.
  // [tables][unique * dim]: sums over the examples; empty of tables that gave another place for
  // them.
  std::vector<std::vector<float>> row_gradients;
};

// Where the layers of one worker of a cut model have other rows than those of its own batch.
struct PassRows {
  // What layers without inputs read: the rows of all workers. Null: the batch itself.
  const Batch* sources = nullptr;
  // [layers]: how many rows each has. Empty: all have those of the batch.
  std::span<const size_t> of_layers = {};
};

// A part of a step: what comes in, and where what it gives is to be.
struct StepLane {
  const Batch* batch = nullptr;
  std::span<const TableInput> tables;
  StepResult* result = nullptr;
  DenseGradients dense_gradients;  // [dense_floats]: gets sums over the examples.
  PassRows rows = {};
};

class StepExchange;  // step_exchange.h

// Invariant: a result is a function of the inputs and the dense array alone, and, where layers
// meet, of what the other lanes and workers give; it does not depend on the number of threads.
class Model {
 public:
  virtual ~Model() = default;
  virtual const std::vector<DenseTensor>& tensors() const = 0;
  size_t dense_floats() const;  // Of the flat array, chunks filled up.
  // The initial flat array: a function of the seed and the tensors' positions.
  std::vector<float> InitialDense(uint64_t seed) const;

  virtual void SetDense(std::span<const float> flat) = 0;
  // The model's own flat array, to be written instead of a call of SetDense; empty where it lies on
  // another device.
  virtual std::span<float> DenseInPlace() = 0;
  // The flat array on the model's device; what is written there by the device's ops counts from the
  // next pass on. Null where it lies on the host.
  virtual float* DenseOnDevice() = 0;
  // Whether this model can take the batch: columns as the job's data gives them, labels in range
  // (0 to 1, a class number, or finite). kInvalidArgument names row and value. Step and Predict
  // require it.
  virtual Status CheckBatch(const Batch& batch) const = 0;
  // Whether layers exchange something within a pass of a step. Then all parts of a step are given
  // to one Step, as lanes, and every worker makes each step with as many.
  virtual bool meets() const = 0;
  // Forward and backward of all lanes, layer by layer where they meet. `exchange` may be null where
  // no layer meets, or a lane is to be by itself. Unless it is null, `rows_done` is called once as
  // soon as losses and all row gradients stand: what only dense gradients need is computed behind
  // that, and results are not touched any more. `tensor_done`, likewise, is called for each tensor,
  // from the last to the first, when the losses and all lanes' gradients of the tensor stand, what
  // fills up its last chunk included. The same bits with them and without. A lane without examples
  // gives -0.0 as each dense gradient, which changes no sum. A failure is the exchange's; results
  // are of no use then.
  using RowsDone = std::function<void()>;
  using TensorDone = std::function<void(uint32_t tensor)>;
  virtual Status Step(std::span<const StepLane> lanes, StepExchange* exchange,
                      const RowsDone& rows_done, const TensorDone& tensor_done) = 0;
  // Of one lane by itself.
  void Step(const Batch& batch, std::span<const TableInput> tables, StepResult* result,
            const DenseGradients& dense_gradients, const RowsDone& rows_done = nullptr,
            const TensorDone& tensor_done = nullptr);
  // All row gradients of a table of one lane of the last Step on the model's device, [unique *
  // dim]; null where StepResult has them in place.
  virtual const float* RowGradientsOnDevice(uint32_t table, size_t lane) const = 0;
  // Scores of the examples and the sum of the losses: see ModelLoss::Score.
  virtual Result<double> Predict(const Batch& batch, std::span<const TableInput> tables,
                                 StepExchange* exchange, const PassRows& rows,
                                 std::vector<float>* probabilities) = 0;
  double Predict(const Batch& batch, std::span<const TableInput> tables,
                 std::vector<float>* probabilities);
  // The device of the model.
  virtual DenseOps& ops() = 0;
  // One line a layer and table for the log: name, kind, device, shape, parameters, bytes.
  virtual std::string Describe() const = 0;
};

// kInvalidArgument when the device is asked for and not there, or the layers do not fit together.
// `worker`: see NewCudaOps().
Result<std::unique_ptr<Model>> NewModel(const Job& job, Executor& executor, uint32_t worker = 0);

// Finds the distinct keys of batches. Which tables share a set of keys is settled once, from the
// job; the memory for searching is kept from batch to batch.
class KeyFinder {
 public:
  // `executor`: whose threads search large batches; it outlives the finder. Null: the caller's.
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
  std::vector<std::vector<uint32_t>> field_shards_;  // [sets][features]; empty: not by field.
  const uint32_t num_shards_;
  Executor* const executor_;
  UniqueKeys unique_;
  std::vector<KeyColumn> columns_;  // Scratch of Find().
};

}  // namespace hdps
