// What a layer of the graph is: its place, what one pass gives it, and the factories of all kinds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job.h"
#include "kernels/dense_ops.h"
#include "worker/data/batch.h"
#include "worker/model/model.h"

namespace hdps {

// A layer's place in the graph. Places stand in the order of the job's layers.
//
// Invariant: after a forward pass `value` holds the output; when a layer's Backward begins,
// `gradient` holds the sum of what all its consumers gave, added from the last consumer to the
// first.
struct Place {
  std::vector<uint32_t> inputs;  // Places before this one.
  uint32_t width = 0;            // Columns of the output.
  uint32_t vector_dim = 0;       // The output is vectors of this many columns; 0: it is not.
  bool used = false;             // The loss depends on it.
  bool learns = false;           // Parameters stand here or below: a gradient is wanted.
  bool relu = false;             // A dense layer that ends in a ReLU.
  bool on_rows = false;          // Can multiply distinct rows: see first_layer.h.
  uint32_t num_consumers = 0;    // Among the used places, counted once an input.
  // The concat whose columns hold the value, and the gradient when nobody else consumes this one;
  // -1: the place has arrays of its own.
  int value_home = -1, gradient_home = -1;
  uint32_t home_column = 0;

  Matrix value, gradient;  // [n, width]
  bool gradient_begun = false;
  bool gradient_masked = false;  // It is already the one in front of the place's own ReLU.

  // How the next consumer gives its gradient: the first one writes, the others add.
  Write NextGradient() {
    const Write write = gradient_begun ? Write::kAdd : Write::kOver;
    gradient_begun = true;
    return write;
  }
};

// One sparse table in one pass.
struct TablePass {
  const KeySet* keys = nullptr;
  RowSpans<const float> rows;     // [unique, dim] on the device.
  RowSpans<float> row_gradients;  // The same; empty in a pass without backward.
  bool gradients_begun = false;
};

// What one pass over one batch gives to all layers.
struct Pass {
  DenseOps& ops;
  const Batch& batch;
  std::vector<Place>& places;
  std::vector<TablePass>& tables;    // [Job::tables]
  const float* dense = nullptr;      // The flat array of parameters, on the device.
  float* dense_gradients = nullptr;  // The same; null in a pass without backward.
  bool tensors_later = false;        // Layers may leave gradients of tensors to FinishBackward.
};

// A layer may keep what its Forward found for the Backward of the same pass.
class Layer {
 public:
  virtual ~Layer() = default;
  virtual void Forward(Pass& pass) = 0;
  // Gives gradients to tensors, rows and those inputs that learn.
  virtual void Backward(Pass& pass) = 0;
  // Of a pass with tensors_later: the gradients of tensors that Backward has left out. All layers'
  // Backward is over; what it read stands as it was.
  virtual void FinishBackward(Pass&) {}
};

// The bags of some columns of the batch over a table's rows.
void CollectBags(const Pass& pass, uint32_t table, const std::vector<uint32_t>& features,
                 std::vector<Bags>* bags);

// What a factory may see and must fill: the width, vector_dim and learns of its place, and its
// tensors.
struct LayerSite {
  const Job& job;
  const LayerSpec& spec;
  uint32_t place;              // Index of its own place.
  std::vector<Place>& places;  // Those up to this one are complete.
  DenseOps& ops;
  std::vector<DenseTensor>& tensors;

  Place& self() const { return places[place]; }
  const Place& input(size_t i) const { return places[self().inputs[i]]; }
  // "model.layers[3] 'deep1' (dense): " + `what`.
  Status Mistake(const std::string& what) const;
  // Ok when there are exactly `count` inputs.
  Status ExpectInputs(size_t count) const;
  // Adds a tensor named "<layer>.<part>" behind the others; returns its first float in the array.
  size_t AddTensor(const std::string& part, std::vector<uint32_t> shape, InitSpec init) const;
  // Uniform in +-sqrt(6 / (inputs + outputs)) (Glorot and Bengio 2010).
  static InitSpec GlorotInit(uint32_t inputs, uint32_t outputs);
};

// `kind` names the layer in logs and job files.
const char* LayerKindName(LayerKind kind);

Result<std::unique_ptr<Layer>> NewEmbeddingLayer(const LayerSite& site);
Result<std::unique_ptr<Layer>> NewNumericLayer(const LayerSite& site);
Result<std::unique_ptr<Layer>> NewConcatLayer(const LayerSite& site);
Result<std::unique_ptr<Layer>> NewSumLayer(const LayerSite& site);
Result<std::unique_ptr<Layer>> NewDenseLayer(const LayerSite& site);
Result<std::unique_ptr<Layer>> NewBiasLayer(const LayerSite& site);
Result<std::unique_ptr<Layer>> NewFmLayer(const LayerSite& site);
Result<std::unique_ptr<Layer>> NewCrossLayer(const LayerSite& site);
Result<std::unique_ptr<Layer>> NewDotLayer(const LayerSite& site);
Result<std::unique_ptr<Layer>> NewLayer(const LayerSite& site);  // By spec.kind.

}  // namespace hdps
