// Cross layers of low rank, as a mixture of experts (Wang et al. 2021, eq. 4).
#include <deque>
#include <type_traits>

#include "common/job/activation.h"
#include "common/job/spec/layer_spec.h"
#include "worker/model/layer.h"

namespace hdps {
namespace {

// Computes, for each layer with K experts, where x_0 is the input and g the softmax of x W_gate:
//   a = tanh(x W_down)             [n, K * rank]
//   h_k = tanh(a_k W_core,k)       [n, rank] for each expert, side by side
//   x' = x_0 * ((g_k h_k, side by side) W_up + bias) + x
// This is eq. 4, because the gates of an example add up to 1.
class CrossMixLayer : public Layer {
 public:
  explicit CrossMixLayer(const LayerSite& site)
      : place_(site.place),
        width_(site.input(0).width),
        experts_(static_cast<size_t>(site.Number("experts"))),
        rank_(static_cast<size_t>(site.Number("rank"))),
        product_gradient_(&site.ops),
        first_gradient_(&site.ops),
        inner_gradient_(&site.ops),
        down_gradient_(&site.ops) {
    for (size_t l = 0; l < site.spec.units; ++l) {
      Level& level = levels_.emplace_back(&site.ops);
      level.down = site.TensorAt(5 * l);
      level.core = site.TensorAt(5 * l + 1);
      level.up = site.TensorAt(5 * l + 2);
      level.bias = site.TensorAt(5 * l + 3);
      level.gate = site.TensorAt(5 * l + 4);
    }
  }

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    const ConstMatrix first = pass.places[self.inputs[0]].value;
    ConstMatrix before = first;
    for (size_t l = 0; l < levels_.size(); ++l) {
      Level& level = levels_[l];
      const Arrays at = ArraysOf(level, first.rows);
      pass.ops.Gemm({}, before, Down(pass.dense, level), at.down);
      pass.ops.RunRows(Activate{Activation::kTanh, at.down, at.down});
      for (size_t k = 0; k < experts_; ++k) {
        pass.ops.Gemm({}, Expert(at.down, k), Core(pass.dense, level, k), Expert(at.core, k));
      }
      pass.ops.RunRows(Activate{Activation::kTanh, at.core, at.core});
      pass.ops.Gemm({}, before, Gate(pass.dense, level), at.gates);
      pass.ops.RunRows(GateExperts{at.gates, at.core, at.gated});
      GemmSpec with_bias;
      with_bias.bias = pass.dense + level.bias;
      pass.ops.Gemm(with_bias, at.gated, Up(pass.dense, level), at.product);
      const Matrix after =
          l + 1 == levels_.size() ? self.value : level.output.ReserveRows(first.rows, width_);
      pass.ops.RunRows(CrossRows{first, at.product, before, after});
      before = after;
    }
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    // Gradient of a layer's output; becomes that of its input.
    const Matrix gradient = self.gradient;
    const Matrix first_gradient = first_gradient_.ReserveRows(gradient.rows, width_);
    for (size_t l = levels_.size(); l-- > 0;) {
      const Matrix product_gradient = product_gradient_.ReserveRows(gradient.rows, width_);
      pass.ops.RunRows(CrossRowsBackward{
          input.value, ArraysOf(levels_[l], gradient.rows).product, gradient, product_gradient,
          l + 1 == levels_.size() ? Write::kOver : Write::kAdd, first_gradient});
      const ConstMatrix before =
          l == 0 ? input.value : levels_[l - 1].output.ReserveRows(gradient.rows, width_);
      ProductBackward(pass, levels_[l], before, product_gradient, gradient);
    }
    if (!input.learns) return;
    pass.ops.Copy(input.NextGradient(), gradient, input.gradient);
    pass.ops.Copy(Write::kAdd, first_gradient, input.gradient);
  }

 private:
  struct Level {
    explicit Level(DenseOps* ops)
        : down_out(ops), core_out(ops), gates(ops), gated(ops), product(ops), output(ops) {}
    size_t down = 0, core = 0, up = 0, bias = 0, gate = 0;  // First floats in the flat array.
    DeviceArray down_out, core_out, gates, gated, product, output;
  };
  // Arrays that a level keeps in a pass of n examples.
  struct Arrays {
    Matrix down, core;  // [n, K * rank]: a and h.
    Matrix gates;       // [n, K]
    Matrix gated;       // [n, K * rank]: the gates times h.
    Matrix product;     // [n, width]
  };

  size_t inner() const { return experts_ * rank_; }
  Arrays ArraysOf(Level& level, size_t rows) const {
    return {level.down_out.ReserveRows(rows, inner()), level.core_out.ReserveRows(rows, inner()),
            level.gates.ReserveRows(rows, experts_), level.gated.ReserveRows(rows, inner()),
            level.product.ReserveRows(rows, width_)};
  }
  template <typename AnyMatrix>
  AnyMatrix Expert(const AnyMatrix& all, size_t k) const {
    return all.Columns(k * rank_, rank_);
  }
  // The functions below return a level's matrices in the flat array of weights or of gradients.
  template <typename Float>
  using MatrixOf = std::conditional_t<std::is_const_v<Float>, ConstMatrix, Matrix>;
  template <typename Float>
  MatrixOf<Float> Down(Float* dense, const Level& level) const {
    return {dense + level.down, width_, inner(), inner()};
  }
  template <typename Float>
  MatrixOf<Float> Core(Float* dense, const Level& level, size_t k) const {
    return {dense + level.core + k * rank_ * rank_, rank_, rank_, rank_};
  }
  template <typename Float>
  MatrixOf<Float> Up(Float* dense, const Level& level) const {
    return {dense + level.up, inner(), width_, width_};
  }
  template <typename Float>
  MatrixOf<Float> Gate(Float* dense, const Level& level) const {
    return {dense + level.gate, width_, experts_, experts_};
  }

  // Computes the gradients of a level's tensors from `product_gradient`, and adds the gradient of
  // the level's input `before` to `gradient`.
  void ProductBackward(Pass& pass, Level& level, ConstMatrix before, Matrix product_gradient,
                       Matrix gradient) {
    const GemmSpec of_weights{.transpose_a = true}, of_input{.transpose_b = true};
    const GemmSpec more_of_input{.transpose_b = true, .write = Write::kAdd};
    const Arrays at = ArraysOf(level, gradient.rows);
    const Matrix inner_gradient = inner_gradient_.ReserveRows(gradient.rows, inner());
    const Matrix down_gradient = down_gradient_.ReserveRows(gradient.rows, inner());
    pass.ops.ActivationBackward({}, false, product_gradient, pass.dense_gradients + level.bias);
    pass.ops.Gemm(of_weights, at.gated, product_gradient, Up(pass.dense_gradients, level));
    pass.ops.Gemm(of_input, product_gradient, Up(pass.dense, level), inner_gradient);
    pass.ops.RunRows(GateExpertsBackward{at.gates, at.core, inner_gradient});
    pass.ops.Gemm(of_weights, before, at.gates, Gate(pass.dense_gradients, level));
    for (size_t k = 0; k < experts_; ++k) {
      const Matrix expert = Expert(inner_gradient, k);
      pass.ops.Gemm(of_weights, Expert(at.down, k), expert, Core(pass.dense_gradients, level, k));
      pass.ops.Gemm(of_input, expert, Core(pass.dense, level, k), Expert(down_gradient, k));
    }
    pass.ops.RunRows(TanhBackward{at.down, down_gradient});
    pass.ops.Gemm(of_weights, before, down_gradient, Down(pass.dense_gradients, level));
    pass.ops.Gemm(more_of_input, down_gradient, Down(pass.dense, level), gradient);
    pass.ops.Gemm(more_of_input, at.gates, Gate(pass.dense, level), gradient);
  }

  uint32_t place_;
  size_t width_, experts_, rank_;
  std::deque<Level> levels_;                       // A deque, because arrays must not move.
  DeviceArray product_gradient_, first_gradient_;  // [n, width]
  DeviceArray inner_gradient_, down_gradient_;     // [n, K * rank]
};

}  // namespace

std::unique_ptr<Layer> NewCrossMix(const LayerSite& site) {
  return std::make_unique<CrossMixLayer>(site);
}

}  // namespace hdps
