// The compressed interaction network of xDeepFM (Lian et al. 2018, eq. 6-8).
#include <algorithm>
#include <deque>

#include "common/job/spec/layer_spec.h"
#include "worker/model/layer.h"

namespace hdps {
namespace {

// Treats components as examples: all maps are [n * dim, maps]. A level is one product Z W, where Z
// [n * dim, maps before * F] holds the products of its input maps with the F vectors. Z is far
// larger than everything else, so only some of its rows exist at a time.
class CinLayer : public Layer {
 public:
  explicit CinLayer(const LayerSite& site)
      : place_(site.place),
        dim_(site.input(0).vector_dim),
        vectors_(site.input(0).width / dim_),
        maps_(site.spec.units),
        halved_(site.Word("split") == "half"),
        products_floats_(site.ops.on_host() ? size_t{1} << 18 : size_t{1} << 24),
        first_(&site.ops),
        first_gradient_(&site.ops),
        before_gradient_(&site.ops),
        products_(&site.ops),
        products_gradient_(&site.ops) {
    for (size_t l = 0; l < site.tensors.size(); ++l) {
      levels_.emplace_back(&site.ops);
      levels_[l].weight = site.TensorAt(l);
      levels_[l].inputs = site.tensors[l].shape[0];
    }
  }

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    const ConstMatrix x = pass.places[self.inputs[0]].value;
    const Matrix first = first_.ReserveRows(x.rows * dim_, vectors_);
    pass.ops.RunRows(SplitVectors{dim_, x, first});
    size_t column = 0;
    for (size_t l = 0; l < levels_.size(); ++l) {
      const Matrix maps = levels_[l].maps.ReserveRows(first.rows, maps_);
      ForEachPiece(l, first.rows, [&](size_t begin, size_t rows) {
        const ConstMatrix z =
            Products(pass, l, Before(l, first.rows).Rows(begin, rows), first.Rows(begin, rows));
        pass.ops.Gemm({}, z, WeightsOf(pass.dense, l), maps.Rows(begin, rows));
      });
      const Matrix out = OutOf(maps, l);
      pass.ops.RunRows(SumComponents{dim_, out, self.value.Columns(column, out.cols)});
      column += out.cols;
    }
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    const size_t rows = self.gradient.rows * dim_;
    first_gradient_.ReserveRows(rows, vectors_);
    size_t column = self.gradient.cols;
    for (size_t l = levels_.size(); l-- > 0;) {
      // The level above has written the gradient of the maps that it reads; with a split the other
      // maps get theirs from the output only.
      const Matrix gradient = levels_[l].gradient.ReserveRows(rows, maps_);
      const Matrix out = OutOf(gradient, l);
      column -= out.cols;
      const bool read_above = l + 1 < levels_.size() && !halved_;
      pass.ops.RunRows(SumComponentsBackward{dim_, self.gradient.Columns(column, out.cols),
                                             read_above ? Write::kAdd : Write::kOver, out});
      LevelBackward(pass, l, gradient);
    }
    if (!input.learns) return;
    pass.ops.RunRows(SplitVectorsBackward{dim_, first_gradient_.ReserveRows(rows, vectors_),
                                          input.NextGradient(), input.gradient});
  }

 private:
  struct Level {
    explicit Level(DenseOps* ops) : maps(ops), gradient(ops) {}
    size_t weight = 0, inputs = 0;  // First float in the flat array; columns of Z.
    DeviceArray maps, gradient;     // [n * dim, maps]
  };

  template <typename AnyMatrix>
  AnyMatrix OutOf(const AnyMatrix& maps, size_t l) const {
    const size_t onward = halved_ && l + 1 < levels_.size() ? maps_ / 2 : 0;
    return maps.Columns(onward, maps_ - onward);
  }
  // Returns the maps that level l reads besides the vectors.
  Matrix Before(size_t l, size_t rows) {
    if (l == 0) return first_.ReserveRows(rows, vectors_);
    return levels_[l - 1].maps.ReserveRows(rows, maps_).Columns(0, levels_[l].inputs / vectors_);
  }
  ConstMatrix WeightsOf(const float* dense, size_t l) const {
    return {dense + levels_[l].weight, levels_[l].inputs, maps_, maps_};
  }

  // Calls `body` at least once, because without rows the sum over them is zero and must be written.
  template <typename Body>
  void ForEachPiece(size_t l, size_t rows, const Body& body) const {
    const size_t piece = std::max<size_t>(products_floats_ / levels_[l].inputs, 1);
    size_t begin = 0;
    do {
      body(begin, std::min(piece, rows - begin));
      begin += piece;
    } while (begin < rows);
  }

  ConstMatrix Products(Pass& pass, size_t l, ConstMatrix before, ConstMatrix first) {
    const Matrix z = products_.ReserveRows(first.rows, levels_[l].inputs);
    pass.ops.RunRows(CinProducts{before, first, z});
    return z;
  }

  void LevelBackward(Pass& pass, size_t l, ConstMatrix gradient) {
    const Matrix before = Before(l, gradient.rows), first = Before(0, gradient.rows);
    const Matrix first_gradient = first_gradient_.ReserveRows(gradient.rows, vectors_);
    const Matrix before_gradient =
        l == 0 ? before_gradient_.ReserveRows(gradient.rows, vectors_)
               : levels_[l - 1].gradient.ReserveRows(gradient.rows, maps_).Columns(0, before.cols);
    const Matrix weight_gradient = {pass.dense_gradients + levels_[l].weight, levels_[l].inputs,
                                    maps_, maps_};
    const bool top = l + 1 == levels_.size();
    ForEachPiece(l, gradient.rows, [&](size_t begin, size_t rows) {
      const ConstMatrix z = Products(pass, l, before.Rows(begin, rows), first.Rows(begin, rows));
      const ConstMatrix dy = gradient.Rows(begin, rows);
      pass.ops.Gemm({.transpose_a = true, .write = begin == 0 ? Write::kOver : Write::kAdd}, z, dy,
                    weight_gradient);
      const Matrix dz = products_gradient_.ReserveRows(rows, levels_[l].inputs);
      pass.ops.Gemm({.transpose_b = true}, dy, WeightsOf(pass.dense, l), dz);
      pass.ops.RunRows(CinProductsBackward{
          before.Rows(begin, rows), first.Rows(begin, rows), dz, before_gradient.Rows(begin, rows),
          top ? Write::kOver : Write::kAdd, first_gradient.Rows(begin, rows)});
    });
    if (l == 0) pass.ops.Copy(Write::kAdd, before_gradient, first_gradient);
  }

  uint32_t place_;
  size_t dim_, vectors_, maps_;
  bool halved_;
  // Floats of Z at a time: on the host as many as a second-level cache holds.
  size_t products_floats_;
  std::deque<Level> levels_;            // A deque, because arrays must not move.
  DeviceArray first_, first_gradient_;  // [n * dim, F]: the vectors, transposed.
  // Gradient of the maps that level 0 reads, which are the vectors too.
  DeviceArray before_gradient_;
  DeviceArray products_, products_gradient_;
};

}  // namespace

std::unique_ptr<Layer> NewCin(const LayerSite& site) { return std::make_unique<CinLayer>(site); }

}  // namespace hdps
