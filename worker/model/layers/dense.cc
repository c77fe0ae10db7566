// A fully connected layer: y = act(x W + b), W [inputs, units]. A ReLU is computed with the
// product; other activations follow it, and z = x W + b is kept for their slopes.
#include "common/job/activation.h"
#include "common/job/spec/layer_spec.h"
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
        x_(&site.ops),
        dy_(&site.ops),
        rounded_weights_(&site.ops),
        weight_(site.TensorAt(0)),
        bias_(site.TensorAt(1)) {}

  void Forward(Pass& pass) override {
    Place& self = pass.places[place_];
    GemmSpec spec;
    spec.bias = pass.dense + bias_;
    spec.relu = relu_;
    const Matrix z = Bends() ? product_.ReserveRows(self.value.rows, units_) : self.value;
    if (self.bf16_products) {
      const Bf16Matrix rounded = rounded_weights_.ReserveBf16Rows(inputs_, units_);
      pass.ops.bf16()->Narrow(WeightsOf(pass), rounded);
      const Bf16Matrix y = self.value_in_bf16 ? self.value16 : Bf16Matrix();
      pass.ops.bf16()->Gemm(spec, RoundedInput(pass), rounded, {z, y});
    } else {
      pass.ops.Gemm(spec, pass.places[self.inputs[0]].value, WeightsOf(pass), z);
    }
    if (Bends()) pass.ops.RunRows(Activate{activation_, z, self.value});
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    const Place& input = pass.places[self.inputs[0]];
    if (Bends()) {
      pass.ops.RunRows(ActivateBackward{activation_, product_.ReserveRows(self.value.rows, units_),
                                        self.gradient});
    }
    if (relu_ && !self.gradient_masked) {
      pass.ops.ActivationBackward(self.value, true, self.gradient, pass.dense_gradients + bias_);
    }
    if (self.bf16_products && !self.gradient_in_bf16) {
      pass.ops.bf16()->Narrow(self.gradient, dy_.ReserveBf16Rows(self.value.rows, units_));
    }
    if (pass.tensors_later && !input.learns) return;
    if (self.bf16_products) {
      BackwardInBf16(pass);
    } else {
      BackwardInFp32(pass);
    }
  }

  void FinishBackward(Pass& pass) override {
    if (pass.places[place_].bf16_products) {
      pass.ops.bf16()->BackwardOfDense(TensorsInBf16(pass));
    } else {
      pass.ops.BackwardOfDense(TensorsInFp32(pass));
    }
  }

 private:
  // Is true if there is an activation that is not computed with the product.
  bool Bends() const { return activation_ != Activation::kNone && !relu_; }
  ConstMatrix WeightsOf(const Pass& pass) const {
    return {pass.dense + weight_, inputs_, units_, units_};
  }
  // Returns the common part of the tensors' gradients: the weights, and the bias unless masking has
  // summed it already.
  template <typename Backward>
  Backward TensorsOf(const Pass& pass) const {
    const Place& self = pass.places[place_];
    Backward layer;
    layer.weight_gradient = {pass.dense_gradients + weight_, inputs_, units_, units_};
    if (!relu_ || self.gradient_masked) layer.bias_gradient = pass.dense_gradients + bias_;
    return layer;
  }

  // ---- in fp32.

  void BackwardInFp32(Pass& pass) {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    DenseBackward layer = pass.tensors_later ? DenseBackward() : TensorsInFp32(pass);
    layer.weights = WeightsOf(pass);
    layer.dy = self.gradient;
    if (input.learns) {
      layer.dx = input.gradient;
      layer.write_dx = input.NextGradient();
      layer.x = input.value;
      layer.relu_below = input.relu && input.num_consumers == 1;
    }
    input.gradient_masked = pass.ops.BackwardOfDense(layer);
  }
  DenseBackward TensorsInFp32(const Pass& pass) const {
    const Place& self = pass.places[place_];
    auto layer = TensorsOf<DenseBackward>(pass);
    layer.x = pass.places[self.inputs[0]].value;
    layer.dy = self.gradient;
    return layer;
  }

  // ---- in bf16. Rounded values of Forward and Backward stay unchanged until FinishBackward.

  // Returns the input in bf16, and rounds it if necessary.
  Bf16Matrix RoundedInput(const Pass& pass) {
    const Place& input = pass.places[pass.places[place_].inputs[0]];
    if (input.value_in_bf16) return input.value16;
    const Bf16Matrix rounded = x_.ReserveBf16Rows(input.value.rows, inputs_);
    pass.ops.bf16()->Narrow(input.value, rounded);
    return rounded;
  }
  Bf16DenseBackward TensorsInBf16(const Pass& pass) {
    const Place& self = pass.places[place_];
    const Place& input = pass.places[self.inputs[0]];
    auto layer = TensorsOf<Bf16DenseBackward>(pass);
    layer.x = input.value_in_bf16 ? input.value16 : x_.ReserveBf16Rows(input.value.rows, inputs_);
    layer.dy =
        self.gradient_in_bf16 ? self.gradient16 : dy_.ReserveBf16Rows(self.value.rows, units_);
    return layer;
  }
  void BackwardInBf16(Pass& pass) {
    Place& input = pass.places[pass.places[place_].inputs[0]];
    Bf16DenseBackward layer = TensorsInBf16(pass);
    if (pass.tensors_later) {
      layer.weight_gradient = {};
      layer.bias_gradient = nullptr;
    }
    layer.weights = rounded_weights_.ReserveBf16Rows(inputs_, units_);
    if (input.gradient_in_bf16) {
      layer.dx.bf16 = input.gradient16;
      layer.relu_below = input.gradient_masked = input.relu;
    } else if (input.learns) {
      layer.dx.fp32 = input.gradient;
      layer.write_dx = input.NextGradient();
    }
    pass.ops.bf16()->BackwardOfDense(layer);
  }

  uint32_t place_, inputs_, units_;
  Activation activation_;
  bool relu_;
  DeviceArray product_;                   // [n, units], where the activation needs it.
  DeviceArray x_, dy_, rounded_weights_;  // In bf16, where it multiplies so.
  size_t weight_, bias_;                  // First floats in the flat array.
};

}  // namespace

std::unique_ptr<Layer> NewDense(const LayerSite& site) {
  site.self().relu = site.spec.activation == Activation::kRelu;
  return std::make_unique<DenseLayer>(site);
}

}  // namespace hdps
