// Bilinear interaction of all pairs of vectors (Huang et al. 2019, eq. 6-8).
#include <algorithm>
#include <deque>

#include "worker/model/layer.h"

namespace hdps {
namespace {

// For each vector f of F, computes u = v_f W_f, [n, dim], or [n, (F - 1 - f) * dim] with one matrix
// a pair; the output has u times v_g for each g > f. Backward computes u again, because keeping it
// would take as much memory as the output. The layer takes some examples at a time, a block, so
// that their vectors stay in the cache over all pairs.
class BilinearLayer : public Layer {
 public:
  explicit BilinearLayer(const LayerSite& site)
      : place_(site.place),
        dim_(site.input(0).vector_dim),
        vectors_(site.input(0).width / dim_),
        one_for_all_(site.Word("matrices") == "all"),
        one_a_pair_(site.Word("matrices") == "interaction"),
        block_examples_(site.ops.on_host() ? 64 : size_t{1} << 24),
        weight_(site.TensorAt(0)),
        weight_columns_(site.tensors[0].shape[1]),
        product_stride_(RowStride(one_a_pair_ ? (vectors_ - 1) * dim_ : dim_)),
        ops_(site.ops) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    const ConstMatrix x = pass.places[self.inputs[0]].value;
    Reserve(x.rows, false);
    pass.ops.RunBands(BlocksOf(x.rows), [&](DenseOps& ops, const Band& band) {
      ForEachBlock(band, x.rows, [&](size_t begin, size_t count) {
        const ConstMatrix of_block = x.Rows(begin, count);
        const Matrix y = self.value.Rows(begin, count);
        for (size_t f = 0; f + 1 < vectors_; ++f) {
          const ConstMatrix u = Products(pass, ops, of_block, f, scratch_[band.index]);
          ops.RunRows(BilinearRows{dim_, u, Behind(of_block, f), PairsOf(y, f)});
        }
      });
    });
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    const size_t rows = self.gradient.rows;
    Reserve(rows, true);
    const Write write = input.learns ? input.NextGradient() : Write::kOver;
    pass.ops.RunBands(BlocksOf(rows), [&](DenseOps& ops, const Band& band) {
      ForEachBlock(band, rows, [&](size_t begin, size_t count) {
        const bool begun = begin > band.first * block_examples_;
        const Block block{input.value.Rows(begin, count), self.gradient.Rows(begin, count),
                          input.learns ? input.gradient.Rows(begin, count) : Matrix(), write,
                          begun ? Write::kAdd : Write::kOver};
        BlockBackward(pass, ops, block, scratch_[band.index]);
      });
    });
    // The gradients of the bands are added in their order.
    const Matrix whole{pass.dense_gradients + weight_, dim_, weight_columns_, weight_columns_};
    if (rows == 0) return pass.ops.FillZero(whole.data, dim_ * weight_columns_);
    for (size_t b = 0; b < ops_.Bands(BlocksOf(rows)); ++b) {
      pass.ops.Copy(b == 0 ? Write::kOver : Write::kAdd, BandGradient(scratch_[b]), whole);
    }
  }

 private:
  // Arrays of a band.
  struct Scratch {
    explicit Scratch(DenseOps* ops) : products(ops), product_gradient(ops), weight_gradient(ops) {}
    DeviceArray products, product_gradient;  // Products of one vector.
    DeviceArray weight_gradient;
  };
  // Some examples in the backward.
  struct Block {
    ConstMatrix x, dy;
    Matrix dx;  // Without data: not computed.
    Write write_dx, write_weights;
  };

  size_t BlocksOf(size_t rows) const { return (rows + block_examples_ - 1) / block_examples_; }
  // Makes the arrays that bands use, because they must not.
  void Reserve(size_t rows, bool backward) {
    const size_t bands = ops_.Bands(BlocksOf(rows)), examples = std::min(rows, block_examples_);
    while (scratch_.size() < bands) scratch_.emplace_back(&ops_);
    for (size_t b = 0; b < bands; ++b) {
      scratch_[b].products.Reserve(examples * product_stride_);
      if (!backward) continue;
      scratch_[b].product_gradient.Reserve(examples * product_stride_);
      scratch_[b].weight_gradient.Reserve(dim_ * weight_columns_);
    }
  }
  template <typename Body>
  void ForEachBlock(const Band& band, size_t rows, const Body& body) const {
    for (size_t p = band.first; p < band.first + band.count; ++p) {
      const size_t begin = p * block_examples_;
      body(begin, std::min(block_examples_, rows - begin));
    }
  }

  void BlockBackward(const Pass& pass, DenseOps& ops, const Block& block, Scratch& scratch) const {
    const ConstMatrix x = block.x;
    // Vector f gets its first gradient in round 0: from its pairs, or, for vector 0, through W.
    for (size_t f = 0; f + 1 < vectors_; ++f) {
      const Write write = f == 0 ? block.write_dx : Write::kAdd;
      const ConstMatrix u = Products(pass, ops, x, f, scratch);
      const Matrix du = InRows(scratch.product_gradient, u.rows, u.cols);
      BilinearRowsBackward task{dim_, u, Behind(x, f), PairsOf(block.dy, f), du, write, {}};
      if (block.dx.data != nullptr) task.dx = Behind(block.dx, f);
      ops.RunRows(task);
      GemmSpec weight_spec{.transpose_a = true, .write = block.write_weights};
      if (one_for_all_ && f > 0) weight_spec.write = Write::kAdd;
      ops.Gemm(weight_spec, x.Columns(f * dim_, dim_), du, MatricesOf(BandGradient(scratch), f));
      if (block.dx.data == nullptr) continue;
      ops.Gemm({.transpose_b = true, .write = write}, du, Weights(pass, f),
               block.dx.Columns(f * dim_, dim_));
    }
  }

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
  Matrix BandGradient(const Scratch& scratch) const {
    return {scratch.weight_gradient.data(), dim_, weight_columns_, weight_columns_};
  }
  Matrix InRows(const DeviceArray& array, size_t rows, size_t cols) const {
    return {array.data(), rows, cols, product_stride_};
  }
  ConstMatrix Products(const Pass& pass, DenseOps& ops, ConstMatrix x, size_t f,
                       const Scratch& scratch) const {
    const ConstMatrix weights = Weights(pass, f);
    const Matrix u = InRows(scratch.products, x.rows, weights.cols);
    ops.Gemm({}, x.Columns(f * dim_, dim_), weights, u);
    return u;
  }

  uint32_t place_;
  size_t dim_, vectors_;
  bool one_for_all_, one_a_pair_;
  size_t block_examples_;
  size_t weight_, weight_columns_;
  size_t product_stride_;  // Floats from row to row of the products of one vector.
  DenseOps& ops_;
  std::deque<Scratch> scratch_;  // [bands]; a deque, because arrays must not move.
};

}  // namespace

std::unique_ptr<Layer> NewBilinear(const LayerSite& site) {
  return std::make_unique<BilinearLayer>(site);
}

}  // namespace hdps
