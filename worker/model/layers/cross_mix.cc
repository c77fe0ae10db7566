// Cross layers of low rank, as a mixture of experts (Wang et al. 2021, eq. 4).
#include <algorithm>
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
// The products with W_down and W_gate are one, since both read x. What lies between it and the
// product with W_up is computed for some examples at a time, a block, by one thread.
class CrossMixLayer : public Layer {
 public:
  explicit CrossMixLayer(const LayerSite& site)
      : place_(site.place),
        width_(site.input(0).width),
        experts_(static_cast<size_t>(site.Number("experts"))),
        rank_(static_cast<size_t>(site.Number("rank"))),
        block_examples_(site.ops.on_host() ? 64 : size_t{1} << 24),
        ops_(site.ops),
        product_gradient_(&site.ops),
        first_gradient_(&site.ops),
        core_gradient_(&site.ops),
        joined_gradient_(&site.ops),
        joined_weight_gradient_(&site.ops) {
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
      const Matrix weights = Joined(level);
      pass.ops.Copy(Write::kOver, Down(pass.dense, level), DownOf(weights));
      pass.ops.Copy(Write::kOver, Gate(pass.dense, level), GatesOf(weights));
      pass.ops.Gemm({}, before, weights, at.joined);
      const auto forward = [&](DenseOps& ops, const Band&, size_t begin, size_t count) {
        const Matrix joined = at.joined.Rows(begin, count), core = at.core.Rows(begin, count);
        const Matrix down = DownOf(joined);
        ops.RunRows(Activate{Activation::kTanh, down, down});
        for (size_t k = 0; k < experts_; ++k) {
          ops.Gemm({}, Expert(down, k), Core(pass.dense, level, k), Expert(core, k));
        }
        ops.RunRows(Activate{Activation::kTanh, core, core});
        ops.RunRows(GateExperts{GatesOf(joined), core, at.gated.Rows(begin, count)});
      };
      ForEachBlock(pass, first.rows, forward);
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
        : weights(ops), joined_out(ops), core_out(ops), gated(ops), product(ops), output(ops) {}
    size_t down = 0, core = 0, up = 0, bias = 0, gate = 0;  // First floats in the flat array.
    DeviceArray weights;  // [width, K * rank + K]: W_down and W_gate, side by side.
    DeviceArray joined_out, core_out, gated, product, output;
  };
  // Arrays that a level keeps in a pass of n examples.
  struct Arrays {
    Matrix joined;   // [n, K * rank + K]: a and, behind it, the gates.
    Matrix core;     // [n, K * rank]: h.
    Matrix gated;    // [n, K * rank]: the gates times h.
    Matrix product;  // [n, width]
  };

  size_t inner() const { return experts_ * rank_; }
  Arrays ArraysOf(Level& level, size_t rows) const {
    return {level.joined_out.ReserveRows(rows, inner() + experts_),
            level.core_out.ReserveRows(rows, inner()), level.gated.ReserveRows(rows, inner()),
            level.product.ReserveRows(rows, width_)};
  }
  template <typename AnyMatrix>
  AnyMatrix Expert(const AnyMatrix& all, size_t k) const {
    return all.Columns(k * rank_, rank_);
  }
  // Return both parts of joined columns.
  Matrix DownOf(const Matrix& joined) const { return joined.Columns(0, inner()); }
  Matrix GatesOf(const Matrix& joined) const { return joined.Columns(inner(), experts_); }
  Matrix Joined(Level& level) const {
    return level.weights.ReserveRows(width_, inner() + experts_);
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

  size_t BlocksOf(size_t rows) const { return (rows + block_examples_ - 1) / block_examples_; }
  // Calls body(ops, band, begin, count) for the examples of each block of each band.
  template <typename Body>
  void ForEachBlock(Pass& pass, size_t rows, const Body& body) const {
    pass.ops.RunBands(BlocksOf(rows), [&](DenseOps& ops, const Band& band) {
      for (size_t b = band.first; b < band.first + band.count; ++b) {
        const size_t begin = b * block_examples_;
        body(ops, band, begin, std::min(block_examples_, rows - begin));
      }
    });
  }

  // Computes the gradients of a level's tensors from `product_gradient`, and adds the gradient of
  // the level's input `before` to `gradient`.
  void ProductBackward(Pass& pass, Level& level, ConstMatrix before, Matrix product_gradient,
                       Matrix gradient) {
    const Arrays at = ArraysOf(level, gradient.rows);
    const Matrix joined_gradient = joined_gradient_.ReserveRows(gradient.rows, inner() + experts_);
    DenseBackward up;
    up.x = at.gated;
    up.weights = Up(pass.dense, level);
    up.dy = product_gradient;
    up.weight_gradient = Up(pass.dense_gradients, level);
    up.bias_gradient = pass.dense_gradients + level.bias;
    up.dx = core_gradient_.ReserveRows(gradient.rows, inner());
    pass.ops.BackwardOfDense(up);
    CoreBackward(pass, level, up.dx, joined_gradient);
    DenseBackward down;
    down.x = before;
    down.weights = Joined(level);
    down.dy = joined_gradient;
    down.weight_gradient = joined_weight_gradient_.ReserveRows(width_, inner() + experts_);
    down.dx = gradient;
    down.write_dx = Write::kAdd;
    pass.ops.BackwardOfDense(down);
    pass.ops.Copy(Write::kOver, DownOf(down.weight_gradient), Down(pass.dense_gradients, level));
    pass.ops.Copy(Write::kOver, GatesOf(down.weight_gradient), Gate(pass.dense_gradients, level));
  }

  // Goes from the gradient of the gated outputs, which it uses up, to that of the joined product.
  void CoreBackward(Pass& pass, Level& level, Matrix gated_gradient, Matrix joined_gradient) {
    const size_t rows = gated_gradient.rows, bands = ops_.Bands(BlocksOf(rows));
    while (of_bands_.size() < bands) {
      of_bands_.emplace_back(&ops_).Reserve(inner() * rank_);
    }
    const auto of_band = [&](size_t b, size_t k) {
      return Matrix{of_bands_[b].data() + k * rank_ * rank_, rank_, rank_, rank_};
    };
    const Arrays at = ArraysOf(level, rows);
    ForEachBlock(pass, rows, [&](DenseOps& ops, const Band& band, size_t begin, size_t count) {
      const Matrix joined = at.joined.Rows(begin, count), to = joined_gradient.Rows(begin, count);
      const Matrix gated = gated_gradient.Rows(begin, count), down = DownOf(joined);
      const Write write = begin == band.first * block_examples_ ? Write::kOver : Write::kAdd;
      ops.RunRows(GateExpertsBackward{GatesOf(joined), at.core.Rows(begin, count), gated});
      ops.Copy(Write::kOver, GatesOf(joined), GatesOf(to));
      for (size_t k = 0; k < experts_; ++k) {
        const Matrix expert = Expert(gated, k);
        ops.Gemm({.transpose_a = true, .write = write}, Expert(down, k), expert,
                 of_band(band.index, k));
        ops.Gemm({.transpose_b = true}, expert, Core(pass.dense, level, k), Expert(DownOf(to), k));
      }
      ops.RunRows(TanhBackward{down, DownOf(to)});
    });
    // The gradients of the bands are added in their order.
    float* const cores = pass.dense_gradients + level.core;
    if (rows == 0) return pass.ops.FillZero(cores, inner() * rank_);
    const Matrix whole{cores, inner(), rank_, rank_};
    for (size_t b = 0; b < bands; ++b) {
      pass.ops.Copy(b == 0 ? Write::kOver : Write::kAdd,
                    Matrix{of_bands_[b].data(), inner(), rank_, rank_}, whole);
    }
  }

  uint32_t place_;
  size_t width_, experts_, rank_, block_examples_;
  DenseOps& ops_;
  std::deque<Level> levels_;                       // Deques, because arrays must not move.
  std::deque<DeviceArray> of_bands_;               // [K * rank, rank] a band: gradients of cores.
  DeviceArray product_gradient_, first_gradient_;  // [n, width]
  DeviceArray core_gradient_;                      // [n, K * rank]
  DeviceArray joined_gradient_;                    // [n, K * rank + K]
  DeviceArray joined_weight_gradient_;             // [width, K * rank + K]
};

}  // namespace

std::unique_ptr<Layer> NewCrossMix(const LayerSite& site) {
  return std::make_unique<CrossMixLayer>(site);
}

}  // namespace hdps
