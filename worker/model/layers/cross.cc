// The cross network of DCN-v2 (Wang et al. 2021, eq. 1).
#include <deque>

#include "common/job/spec/layer_spec.h"
#include "worker/model/layer.h"

namespace hdps {
namespace {

// Computes x_{l+1} = x_0 * (x_l W_l + b_l) + x_l for each level, where x_0 is the input; the last
// one is the output.
class CrossLayer : public Layer {
 public:
  explicit CrossLayer(const LayerSite& site)
      : place_(site.place),
        width_(site.input(0).width),
        product_gradient_(&site.ops),
        first_gradient_(&site.ops) {
    for (uint32_t l = 0; l < site.spec.units; ++l) {
      levels_.emplace_back(&site.ops);
      levels_[l].weight = site.TensorAt(2 * size_t{l});
      levels_[l].bias = site.TensorAt(2 * size_t{l} + 1);
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
      pass.ops.RunRows(CrossRows{first, product, before, after});
      before = after;
    }
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    // Gradient of x_{l+1}; becomes that of x_l, level by level.
    const Matrix gradient = self.gradient;
    const Matrix product_gradient = Whole(product_gradient_, gradient.rows);
    const Matrix first_gradient = Whole(first_gradient_, gradient.rows);
    for (size_t l = levels_.size(); l-- > 0;) {
      Level& level = levels_[l];
      pass.ops.RunRows(CrossRowsBackward{
          input.value, Whole(level.product, gradient.rows), gradient, product_gradient,
          l + 1 == levels_.size() ? Write::kOver : Write::kAdd, first_gradient});
      DenseBackward product;
      product.x = l == 0 ? input.value : Whole(levels_[l - 1].output, gradient.rows);
      product.weights = Weights(pass.dense + level.weight);
      product.dy = product_gradient;
      product.weight_gradient = {pass.dense_gradients + level.weight, width_, width_, width_};
      product.bias_gradient = pass.dense_gradients + level.bias;
      product.dx = gradient;
      product.write_dx = Write::kAdd;
      pass.ops.BackwardOfDense(product);
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

  Matrix Whole(DeviceArray& array, size_t rows) const { return array.ReserveRows(rows, width_); }
  ConstMatrix Weights(const float* data) const { return {data, width_, width_, width_}; }

  uint32_t place_, width_;
  std::deque<Level> levels_;  // A deque, because arrays must not move.
  DeviceArray product_gradient_, first_gradient_;
};

}  // namespace

std::unique_ptr<Layer> NewCross(const LayerSite& site) {
  return std::make_unique<CrossLayer>(site);
}

}  // namespace hdps
