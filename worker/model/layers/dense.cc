// A fully connected layer: y = act(x W + b), W [inputs, units]. A ReLU is computed with the
// product; the other activations behind it, from z = x W + b, which is kept for their slopes.
#include "worker/model/layer.h"

namespace hdps {
namespace {

class DenseLayer : public Layer {
 public:
  explicit DenseLayer(const LayerSite& site)
      : place_(site.place),
        inputs_(site.input(0).width),
        units_(site.spec.units),
        activation_(site.spec.activation),
        relu_(activation_ == Activation::kRelu),
        product_(&site.ops),
        weight_(site.TensorAt(0)),
        bias_(site.TensorAt(1)) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    GemmSpec spec;
    spec.bias = pass.dense + bias_;
    spec.relu = relu_;
    const Matrix z = Bends() ? product_.ReserveRows(self.value.rows, units_) : self.value;
    pass.ops.Gemm(spec, pass.places[self.inputs[0]].value,
                  {pass.dense + weight_, inputs_, units_, units_}, z);
    if (Bends()) pass.ops.RunRows(Activate{activation_, z, self.value});
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    if (Bends()) {
      pass.ops.RunRows(ActivateBackward{activation_, product_.ReserveRows(self.value.rows, units_),
                                        self.gradient});
    }
    if (relu_ && !self.gradient_masked) {
      pass.ops.ActivationBackward(self.value, true, self.gradient, pass.dense_gradients + bias_);
    }
    if (pass.tensors_later && !input.learns) return;
    DenseBackward layer = pass.tensors_later ? DenseBackward() : OfTensors(pass);
    layer.weights = {pass.dense + weight_, inputs_, units_, units_};
    layer.dy = self.gradient;
    if (input.learns) {
      layer.dx = input.gradient;
      layer.write_dx = input.NextGradient();
      layer.x = input.value;
      layer.relu_below = input.relu && input.num_consumers == 1;
    }
    input.gradient_masked = pass.ops.BackwardOfDense(layer);
  }

  void FinishBackward(Pass& pass) override { pass.ops.BackwardOfDense(OfTensors(pass)); }

 private:
  // Whether there is an activation that is not computed with the product.
  bool Bends() const { return activation_ != Activation::kNone && !relu_; }
  // The gradients of the weights, and of the bias unless masking has summed it up.
  DenseBackward OfTensors(const Pass& pass) const {
    const Place& self = pass.places[place_];
    DenseBackward layer;
    layer.x = pass.places[self.inputs[0]].value;
    layer.dy = self.gradient;
    layer.weight_gradient = {pass.dense_gradients + weight_, inputs_, units_, units_};
    if (!relu_ || self.gradient_masked) layer.bias_gradient = pass.dense_gradients + bias_;
    return layer;
  }

  uint32_t place_, inputs_, units_;
  Activation activation_;
  bool relu_;
  DeviceArray product_;   // [n, units], where the activation needs it.
  size_t weight_, bias_;  // First floats in the flat array.
};

}  // namespace

std::unique_ptr<Layer> NewDense(const LayerSite& site) {
  site.self().relu = site.spec.activation == Activation::kRelu;
  return std::make_unique<DenseLayer>(site);
}

}  // namespace hdps
