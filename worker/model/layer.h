// What computes a layer of the graph: its place, what one pass gives it, and how it is made.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/job/layers/layer_record.h"
#include "common/job/spec/table_spec.h"
#include "kernels/dense_ops.h"
#include "worker/data/batch.h"
#include "worker/model/model.h"
#include "worker/model/step_exchange.h"

namespace hdps {

struct Job;
struct LayerSpec;

// A layer's place in the graph. Places stand in the order of the job's layers.
//
// Invariant: after a forward pass `value` holds the output; when a layer's Backward begins,
// `gradient` holds the sum of what all its consumers gave, added from the last consumer to the
// first.
struct Place {
  std::vector<uint32_t> inputs;  // Places before this one.
  uint32_t width = 0;            // Columns of the output.
  uint32_t vector_dim = 0;       // As in LayerShape.
  bool used = false;             // The loss depends on it.
  bool learns = false;           // Parameters stand here or below: a gradient is wanted.
  bool relu = false;             // A dense layer that ends in a ReLU.
  bool on_rows = false;          // Can multiply distinct rows: see first_layer.h.
  bool fused = false;            // A place behind does its work: it has no values.
  uint32_t num_consumers = 0;    // Among the used places, counted once an input.
  // The concat whose columns hold the value, and the gradient when nobody else consumes this one;
  // -1: the place has arrays of its own.
  int value_home = -1, gradient_home = -1;
  uint32_t home_column = 0;

  // What stands in bf16 alone: `value`, or `gradient`, then has a shape and no data. See
  // bf16_layers.h; a dense layer with bf16_products multiplies in bf16.
  bool bf16_products = false, value_in_bf16 = false, gradient_in_bf16 = false;

  Matrix value, gradient;          // [n, width]
  Bf16Matrix value16, gradient16;  // Likewise.
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
  const Batch& sources;  // What layers without inputs read; see PassRows.
  std::vector<Place>& places;
  std::vector<TablePass>& tables;    // [Job::tables]
  const float* dense = nullptr;      // The flat array of parameters, on the device.
  float* dense_gradients = nullptr;  // The same; null in a pass without backward.
  bool training = false;             // Forward of a step, not of an evaluation.
  bool tensors_later = false;        // Layers may leave gradients of tensors to FinishBackward.
  // Of a step with lanes: whom its layers meet, and which lane this pass is. Null: nobody.
  StepExchange* exchange = nullptr;
  size_t lane = 0;
};

// A layer may keep what its Forward found for the Backward of the same pass.
class Layer {
 public:
  virtual ~Layer() = default;
  // Takes what the layer needs of the batch to the device, before any layer's Forward.
  virtual void Bring(Pass&) {}
  virtual void Forward(Pass& pass) = 0;
  // Gives gradients to tensors, rows and those inputs that learn.
  virtual void Backward(Pass& pass) = 0;
  // Of a pass with tensors_later: the gradients of tensors that Backward has left out. All layers'
  // Backward is over; what it read stands as it was.
  virtual void FinishBackward(Pass&) {}
};

// A layer whose passes have an exchange in the middle, of lanes or of workers. Every lane begins
// before any other lane's next layer, and ends when it is its turn again: what is exchanged has the
// time in which the others compute.
//
// Unlike other layers it is called also where its place has no rows. A failure ends the step.
class MeetingLayer : public Layer {
 public:
  // Whether there is anything to exchange; settled when the graph is built.
  virtual bool meets() const { return true; }
  virtual void BeginForward(Pass& pass) = 0;
  [[nodiscard]] virtual Status EndForward(Pass& pass) = 0;
  virtual void BeginBackward(Pass& pass) = 0;
  [[nodiscard]] virtual Status EndBackward(Pass& pass) = 0;
  // Where it does not meet.
  void Forward(Pass& pass) final;
  void Backward(Pass& pass) final;
};

// What stands in the place of a layer whose work is done elsewhere.
class FusedAway : public Layer {
 public:
  void Forward(Pass&) override {}
  void Backward(Pass&) override {}
};

// The bags of some columns of the batch over a table's rows.
void CollectBags(const Pass& pass, uint32_t table, const std::vector<uint32_t>& features,
                 std::vector<Bags>* bags);

// What a maker may see. All places have their inputs, widths and what learns; tensors have their
// places in the flat array.
struct LayerSite {
  const Job& job;
  const LayerSpec& spec;
  uint32_t place;  // Index of its own place.
  std::vector<Place>& places;
  DenseOps& ops;
  std::span<const DenseTensor> tensors;  // Its own, in the order of its shape.

  Place& self() const { return places[place]; }
  const Place& input(size_t i) const { return places[self().inputs[i]]; }
  // The first float of its i-th tensor in the flat array.
  size_t TensorAt(size_t i) const { return tensors[i].first_chunk * kDenseChunkFloats; }
  // The value of a setting of its kind alone: a number, or a choice.
  double Number(const std::string& name) const;
  const std::string& Word(const std::string& name) const;
};

// By the record of its kind, or, for a built-in one, by its maker.
std::unique_ptr<Layer> NewLayer(const LayerSite& site);

// One maker a line of layer_list.def, in layers/<file>.cc.
#define HDPS_LAYER(file, name) std::unique_ptr<Layer> New##name(const LayerSite& site);
#include "common/job/layers/layer_list.def"
#undef HDPS_LAYER

}  // namespace hdps
