// Bilinear interaction of all pairs of vectors (Huang et al. 2019, eq. 6-8).
#include "worker/model/layer.h"

namespace hdps {
namespace {

// For each vector f of F, computes u = v_f W_f, [n, dim], or [n, (F - 1 - f) * dim] with one matrix
// a pair; the output has u times v_g for each g > f. Backward computes u again, because keeping it
// would take as much memory as the output.
class BilinearLayer : public Layer {
 public:
  explicit BilinearLayer(const LayerSite& site)
      : place_(site.place),
        dim_(site.input(0).vector_dim),
        vectors_(site.input(0).width / dim_),
        one_for_all_(site.Word("matrices") == "all"),
        one_a_pair_(site.Word("matrices") == "interaction"),
        weight_(site.TensorAt(0)),
        weight_columns_(site.tensors[0].shape[1]),
        products_(&site.ops),
        product_gradient_(&site.ops) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    const ConstMatrix x = pass.places[self.inputs[0]].value;
    for (size_t f = 0; f + 1 < vectors_; ++f) {
      const ConstMatrix u = Products(pass, x, f);
      pass.ops.RunRows(BilinearRows{dim_, u, Behind(x, f), PairsOf(self.value, f)});
    }
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    const ConstMatrix x = input.value;
    // Vector f gets its first gradient in round 0: from its pairs, or, for vector 0, through W.
    const Write first = input.learns ? input.NextGradient() : Write::kOver;
    for (size_t f = 0; f + 1 < vectors_; ++f) {
      const Write write = f == 0 ? first : Write::kAdd;
      const ConstMatrix u = Products(pass, x, f);
      const Matrix du = product_gradient_.ReserveRows(u.rows, u.cols);
      BilinearRowsBackward task{dim_, u, Behind(x, f), PairsOf(self.gradient, f), du, write, {}};
      if (input.learns) task.dx = Behind(input.gradient, f);
      pass.ops.RunRows(task);
      GemmSpec weight_spec{.transpose_a = true};
      if (one_for_all_ && f > 0) weight_spec.write = Write::kAdd;
      pass.ops.Gemm(
          weight_spec, x.Columns(f * dim_, dim_), du,
          MatricesOf(Matrix{pass.dense_gradients + weight_, dim_, weight_columns_, weight_columns_},
                     f));
      if (!input.learns) continue;
      pass.ops.Gemm({.transpose_b = true, .write = write}, du, Weights(pass, f),
                    input.gradient.Columns(f * dim_, dim_));
    }
  }

 private:
  // Return the vectors after f, and the pairs of f with them.
  template <typename AnyMatrix>
  AnyMatrix Behind(const AnyMatrix& x, size_t f) const {
    return x.Columns((f + 1) * dim_, (vectors_ - 1 - f) * dim_);
  }
  template <typename AnyMatrix>
  AnyMatrix PairsOf(const AnyMatrix& y, size_t f) const {
    return y.Columns(PairsBefore(f) * dim_, (vectors_ - 1 - f) * dim_);
  }
  size_t PairsBefore(size_t f) const { return f * (2 * vectors_ - 1 - f) / 2; }
  template <typename AnyMatrix>
  AnyMatrix MatricesOf(const AnyMatrix& all, size_t f) const {
    if (one_a_pair_) return PairsOf(all, f);
    return all.Columns(one_for_all_ ? 0 : f * dim_, dim_);
  }
  ConstMatrix Weights(const Pass& pass, size_t f) const {
    return MatricesOf(ConstMatrix(pass.dense + weight_, dim_, weight_columns_, weight_columns_), f);
  }
  ConstMatrix Products(Pass& pass, ConstMatrix x, size_t f) {
    const ConstMatrix weights = Weights(pass, f);
    const Matrix u = products_.ReserveRows(x.rows, weights.cols);
    pass.ops.Gemm({}, x.Columns(f * dim_, dim_), weights, u);
    return u;
  }

  uint32_t place_;
  size_t dim_, vectors_;
  bool one_for_all_, one_a_pair_;
  size_t weight_, weight_columns_;
  DeviceArray products_, product_gradient_;  // Products of one vector.
};

}  // namespace

std::unique_ptr<Layer> NewBilinear(const LayerSite& site) {
  return std::make_unique<BilinearLayer>(site);
}

}  // namespace hdps
