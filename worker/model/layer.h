// Interface of the graph's layers: their places, the data of a pass, and how layers are made.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/job/layers/layer_record.h"
#include "kernels/dense_ops.h"
#include "worker/data/batch.h"
#include "worker/model/model.h"
#include "worker/model/step_exchange.h"

namespace hdps {

struct Job;
struct LayerSpec;

// The place of a layer in the graph. Places have the order of the job's layers.
//
// Invariant: after a forward pass `value` holds the output. When a layer's Backward begins,
// `gradient` holds the sum of its consumers' contributions, added from the last consumer to the
// first.
struct Place {
  std::vector<uint32_t> inputs;  // Places before this one.
  uint32_t width = 0;            // Columns of the output.
  uint32_t vector_dim = 0;       // As in LayerShape.
  bool used = false;             // The loss depends on it.
  bool learns = false;         // This layer or one below has parameters, so a gradient is computed.
  bool relu = false;           // A dense layer that ends in a ReLU.
  bool on_rows = false;        // Can multiply distinct rows: see first_layer.h.
  bool fused = false;          // A later place does its work, and it has no values.
  uint32_t num_consumers = 0;  // Number of readers among the used places, counted once per input.
  // The concat whose columns hold the value; and the gradient if it is the only consumer. -1: the
  // place has arrays of its own.
  int value_home = -1, gradient_home = -1;
  uint32_t home_column = 0;

  // Values that are kept in bf16 only: `value` or `gradient` then has a shape but no data. See
  // bf16_layers.h; a dense layer with bf16_products multiplies in bf16.
  bool bf16_products = false, value_in_bf16 = false, gradient_in_bf16 = false;

  Matrix value, gradient;          // [n, width]
  Bf16Matrix value16, gradient16;  // [n, width]
  bool gradient_begun = false;
  bool gradient_masked = false;  // It is already the one in front of the place's own ReLU.

  // Returns how the next consumer gives its gradient: the first one writes, the others add.
  Write NextGradient() {
    const Write write = gradient_begun ? Write::kAdd : Write::kOver;
    gradient_begun = true;
    return write;
  }
};

// The keys, rows and gradients of one sparse table in a pass.
struct TablePass {
  const KeySet* keys = nullptr;
  RowSpans<const float> rows;     // [unique, dim] on the device.
  RowSpans<float> row_gradients;  // [unique, dim] on the device; empty in a pass without backward.
  bool gradients_begun = false;
};

// The data that one pass over one batch gives to all layers.
struct Pass {
  DenseOps& ops;
  const Batch& batch;
  const Batch& sources;  // Batch that layers without inputs read; see PassRows.
  std::vector<Place>& places;
  std::vector<TablePass>& tables;  // [Job::tables]
  const float* dense = nullptr;    // The flat array of parameters, on the device.
  // Gradients of the flat array, on the device; null in a pass without backward.
  float* dense_gradients = nullptr;
  bool training = false;       // Forward of a step, not of an evaluation.
  bool tensors_later = false;  // Layers may leave gradients of tensors to FinishBackward.
  // In a step with lanes: the exchange with other lanes and workers, and this pass's lane. Null:
  // there is none.
  StepExchange* exchange = nullptr;
  size_t lane = 0;
};

// Computes one layer. It may keep results of Forward for the Backward of the same pass.
class Layer {
 public:
  virtual ~Layer() = default;
  // Copies what the layer needs of the batch to the device, before any layer's Forward.
  virtual void Bring(Pass&) {}
  virtual void Forward(Pass& pass) = 0;
  // Writes the gradients of tensors, rows and those inputs that learn.
  virtual void Backward(Pass& pass) = 0;
  // In a pass with tensors_later: computes the gradients of tensors that Backward has left out.
  // Called after all layers' Backward; what Backward read has not changed.
  virtual void FinishBackward(Pass&) {}
};

// A layer whose passes exchange values between lanes or workers in the middle. Every lane begins
// the exchange before any lane computes its next layer, and ends it at its next turn, so that the
// exchange overlaps the other lanes' computing.
//
// Unlike other layers it is called even if its place has no rows. An error ends the step.
class ExchangeLayer : public Layer {
 public:
  // Is true if there is anything to exchange; fixed when the graph is built.
  virtual bool has_exchange() const { return true; }
  virtual void BeginForward(Pass& pass) = 0;
  [[nodiscard]] virtual Status EndForward(Pass& pass) = 0;
  virtual void BeginBackward(Pass& pass) = 0;
  [[nodiscard]] virtual Status EndBackward(Pass& pass) = 0;
  // Used if there is nothing to exchange.
  void Forward(Pass& pass) final;
  void Backward(Pass& pass) final;
};

// Stands at the place of a layer whose work another layer does.
class FusedPlaceholder : public Layer {
 public:
  void Forward(Pass&) override {}
  void Backward(Pass&) override {}
};

// Collects the bags of some columns of the batch, over a table's rows.
void CollectBags(const Pass& pass, uint32_t table, const std::vector<uint32_t>& features,
                 std::vector<Bags>* bags);

// Parameters of a layer's maker. All places have their inputs, widths and `learns`; tensors have
// their places in the flat array.
struct LayerSite {
  const Job& job;
  const LayerSpec& spec;
  uint32_t place;  // Index of its own place.
  std::vector<Place>& places;
  DenseOps& ops;
  std::span<const DenseTensor> tensors;  // Its own, in the order of its shape.

  Place& self() const { return places[place]; }
  const Place& input(size_t i) const { return places[self().inputs[i]]; }
  // Returns the first float of its i-th tensor in the flat array.
  size_t TensorAt(size_t i) const;
  // Return the value of a setting that only this kind has: a number, or a choice.
  double Number(const std::string& name) const;
  const std::string& Word(const std::string& name) const;
};

// Makes a layer by the record of its kind; built-in kinds have a maker below.
std::unique_ptr<Layer> NewLayer(const LayerSite& site);

// Declares one maker for each line of layer_list.def; it is defined in layers/<file>.cc.
#define HDPS_LAYER(file, name) std::unique_ptr<Layer> New##name(const LayerSite& site);
#include "common/job/layers/layer_list.def"
#undef HDPS_LAYER

}  // namespace hdps
