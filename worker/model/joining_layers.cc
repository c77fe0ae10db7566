// Layers that bring other layers together: concat and sum.
#include "worker/model/layer.h"

namespace hdps {
namespace {

// Inputs that live in this layer's own columns (Place::value_home) need no copy.
class ConcatLayer : public Layer {
 public:
  explicit ConcatLayer(uint32_t place) : place_(place) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    size_t column = 0;
    for (const uint32_t i : self.inputs) {
      const Place& input = pass.places[i];
      if (input.value_home != static_cast<int>(place_) || input.home_column != column) {
        pass.ops.Copy(Write::kOver, input.value, self.value.Columns(column, input.width));
      }
      column += input.width;
    }
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    size_t column = 0;
    for (const uint32_t i : self.inputs) {
      Place& input = pass.places[i];
      if (input.learns && input.gradient_home != static_cast<int>(place_)) {
        pass.ops.Copy(input.NextGradient(), self.gradient.Columns(column, input.width),
                      input.gradient);
      }
      column += input.width;
    }
  }

 private:
  uint32_t place_;
};

class SumLayer : public Layer {
 public:
  explicit SumLayer(uint32_t place) : place_(place) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Write write = Write::kOver;
    for (const uint32_t i : self.inputs) {
      pass.ops.Copy(write, pass.places[i].value, self.value);
      write = Write::kAdd;
    }
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    for (const uint32_t i : self.inputs) {
      Place& input = pass.places[i];
      if (input.learns) pass.ops.Copy(input.NextGradient(), self.gradient, input.gradient);
    }
  }

 private:
  uint32_t place_;
};

}  // namespace

Result<std::unique_ptr<Layer>> NewConcatLayer(const LayerSite& site) {
  Place& self = site.self();
  if (self.inputs.empty()) return site.Mistake("has no inputs, takes one or more");
  self.vector_dim = site.input(0).vector_dim;
  for (const uint32_t i : self.inputs) {
    const Place& input = site.places[i];
    self.width += input.width;
    self.learns |= input.learns;
    if (input.vector_dim != self.vector_dim) self.vector_dim = 0;
  }
  return std::unique_ptr<Layer>(std::make_unique<ConcatLayer>(site.place));
}

Result<std::unique_ptr<Layer>> NewSumLayer(const LayerSite& site) {
  Place& self = site.self();
  if (self.inputs.empty()) return site.Mistake("has no inputs, takes one or more");
  self.width = site.input(0).width;
  self.vector_dim = site.input(0).vector_dim;
  for (size_t i = 0; i < self.inputs.size(); ++i) {
    if (site.input(i).width != self.width) {
      return site.Mistake("input '" + site.spec.inputs[i] + "' has width " +
                          std::to_string(site.input(i).width) + ", '" + site.spec.inputs[0] +
                          "' has " + std::to_string(self.width) + "; all must be equal");
    }
    self.learns |= site.input(i).learns;
    if (site.input(i).vector_dim != self.vector_dim) self.vector_dim = 0;
  }
  return std::unique_ptr<Layer>(std::make_unique<SumLayer>(site.place));
}

}  // namespace hdps
