// Adds one number to each column.
#include "worker/model/layer.h"

namespace hdps {
namespace {

class BiasLayer : public Layer {
 public:
  explicit BiasLayer(const LayerSite& site) : place_(site.place), bias_(site.TensorAt(0)) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    pass.ops.RunRows(AddBias{pass.dense + bias_, pass.places[self.inputs[0]].value, self.value});
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    pass.ops.ActivationBackward(self.value, false, self.gradient, pass.dense_gradients + bias_);
    if (input.learns) pass.ops.Copy(input.NextGradient(), self.gradient, input.gradient);
  }

 private:
  uint32_t place_;
  size_t bias_;
};

}  // namespace

std::unique_ptr<Layer> NewBias(const LayerSite& site) { return std::make_unique<BiasLayer>(site); }

}  // namespace hdps
