// Layers with dense parameters: fully connected, bias, cross network.
#include <deque>

#include "worker/model/layer.h"

namespace hdps {
namespace {

// y = act(x W + b), W [inputs, units].
class DenseLayer : public Layer {
 public:
  explicit DenseLayer(const LayerSite& site)
      : place_(site.place),
        inputs_(site.input(0).width),
        units_(site.spec.units),
        relu_(site.spec.activation == Activation::kRelu),
        weight_(
            site.AddTensor("weight", {inputs_, units_}, LayerSite::GlorotInit(inputs_, units_))),
        bias_(site.AddTensor("bias", {units_}, {InitKind::kZeros, 0.0f})) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    GemmSpec spec;
    spec.bias = pass.dense + bias_;
    spec.relu = relu_;
    pass.ops.Gemm(spec, pass.places[self.inputs[0]].value,
                  {pass.dense + weight_, inputs_, units_, units_}, self.value);
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
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
  bool relu_;
  size_t weight_, bias_;  // First floats in the flat array.
};

class BiasLayer : public Layer {
 public:
  explicit BiasLayer(const LayerSite& site)
      : place_(site.place),
        bias_(site.AddTensor("bias", {site.input(0).width}, {InitKind::kZeros, 0.0f})) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    pass.ops.AddBias(pass.places[self.inputs[0]].value, pass.dense + bias_, self.value);
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

// x_0 the input, x_{l+1} = x_0 * (x_l W_l + b_l) + x_l; the output is the last of them.
class CrossLayer : public Layer {
 public:
  explicit CrossLayer(const LayerSite& site)
      : place_(site.place),
        width_(site.input(0).width),
        product_gradient_(&site.ops),
        first_gradient_(&site.ops) {
    for (uint32_t l = 0; l < site.spec.units; ++l) {
      const std::string number = std::to_string(l);
      levels_.emplace_back(&site.ops);
      levels_[l].weight = site.AddTensor("weight" + number, {width_, width_},
                                         LayerSite::GlorotInit(width_, width_));
      levels_[l].bias = site.AddTensor("bias" + number, {width_}, {InitKind::kZeros, 0.0f});
    }
  }

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    const ConstMatrix first = pass.places[self.inputs[0]].value;
    ConstMatrix before = first;
    for (size_t l = 0; l < levels_.size(); ++l) {
      Level& level = levels_[l];
      GemmSpec spec;
      spec.bias = pass.dense + level.bias;
      const Matrix product = Whole(level.product, first.rows);
      pass.ops.Gemm(spec, before, Weights(pass.dense + level.weight), product);
      const Matrix after = l + 1 == levels_.size() ? self.value : Whole(level.output, first.rows);
      pass.ops.Cross(first, product, before, after);
      before = after;
    }
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    const Matrix gradient = self.gradient;  // Of x_{l+1}; becomes that of x_l level by level.
    const Matrix product_gradient = Whole(product_gradient_, gradient.rows);
    const Matrix first_gradient = Whole(first_gradient_, gradient.rows);
    for (size_t l = levels_.size(); l-- > 0;) {
      Level& level = levels_[l];
      pass.ops.CrossBackward(input.value, Whole(level.product, gradient.rows), gradient,
                             l + 1 == levels_.size() ? Write::kOver : Write::kAdd, product_gradient,
                             first_gradient);
      pass.ops.ActivationBackward({}, false, product_gradient, pass.dense_gradients + level.bias);
      const ConstMatrix before =
          l == 0 ? ConstMatrix(input.value) : Whole(levels_[l - 1].output, gradient.rows);
      GemmSpec weight_spec;
      weight_spec.transpose_a = true;
      pass.ops.Gemm(weight_spec, before, product_gradient,
                    {pass.dense_gradients + level.weight, width_, width_, width_});
      GemmSpec input_spec;
      input_spec.transpose_b = true;
      input_spec.write = Write::kAdd;
      pass.ops.Gemm(input_spec, product_gradient, Weights(pass.dense + level.weight), gradient);
    }
    if (!input.learns) return;
    pass.ops.Copy(input.NextGradient(), gradient, input.gradient);
    pass.ops.Copy(Write::kAdd, first_gradient, input.gradient);
  }

 private:
  struct Level {
    explicit Level(DenseOps* ops) : product(ops), output(ops) {}
    size_t weight = 0, bias = 0;  // First floats in the flat array.
    DeviceArray product, output;  // x_l W_l + b_l and x_{l+1}, [n, width].
  };

  Matrix Whole(DeviceArray& array, size_t rows) const {
    const size_t stride = RowStride(width_);
    return {array.Reserve(rows * stride), rows, width_, stride};
  }
  ConstMatrix Weights(const float* data) const { return {data, width_, width_, width_}; }

  uint32_t place_, width_;
  std::deque<Level> levels_;  // Never moved: arrays stay where they are.
  DeviceArray product_gradient_, first_gradient_;
};

}  // namespace

Result<std::unique_ptr<Layer>> NewDenseLayer(const LayerSite& site) {
  HDPS_RETURN_IF_ERROR(site.ExpectInputs(1));
  if (site.spec.units == 0) return site.Mistake("units is 0, must be 1 or more");
  site.self().width = site.spec.units;
  site.self().learns = true;
  site.self().relu = site.spec.activation == Activation::kRelu;
  return std::unique_ptr<Layer>(std::make_unique<DenseLayer>(site));
}

Result<std::unique_ptr<Layer>> NewBiasLayer(const LayerSite& site) {
  HDPS_RETURN_IF_ERROR(site.ExpectInputs(1));
  site.self().width = site.input(0).width;
  site.self().learns = true;
  return std::unique_ptr<Layer>(std::make_unique<BiasLayer>(site));
}

Result<std::unique_ptr<Layer>> NewCrossLayer(const LayerSite& site) {
  HDPS_RETURN_IF_ERROR(site.ExpectInputs(1));
  if (site.spec.units == 0) return site.Mistake("units is 0, must be 1 or more (cross layers)");
  site.self().width = site.input(0).width;
  site.self().learns = true;
  return std::unique_ptr<Layer>(std::make_unique<CrossLayer>(site));
}

}  // namespace hdps
