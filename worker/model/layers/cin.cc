// The compressed interaction network of xDeepFM (Lian et al. 2018, eq. 6-8).
#include <algorithm>
#include <deque>
#include <numeric>

#include "common/job/spec/layer_spec.h"
#include "worker/model/layer.h"

namespace hdps {
namespace {

// Lays out maps as rows, [maps, n * dim], so that a level is one product W^T Z, where Z holds the
// products of its input maps with the F vectors. In level 0 both are the vectors: each pair is
// there once, with the sum of its two weights. Z is far larger than everything else, so the layer
// takes some examples at a time through all levels, a piece: Z of a piece stays in the cache.
class CinLayer : public Layer {
 public:
  explicit CinLayer(const LayerSite& site)
      : place_(site.place),
        dim_(site.input(0).vector_dim),
        vectors_(site.input(0).width / dim_),
        maps_(site.spec.units),
        halved_(site.Word("split") == "half"),
        ops_(site.ops),
        first_(&site.ops),
        folded_(&site.ops) {
    size_t most_products = PairsOf(0);
    for (size_t l = 0; l < site.tensors.size(); ++l) {
      levels_.emplace_back(&site.ops);
      levels_[l].weight = site.TensorAt(l);
      levels_[l].inputs = site.tensors[l].shape[0];
      if (l > 0) most_products = std::max(most_products, levels_[l].inputs);
    }
    const size_t floats = site.ops.on_host() ? kProductsOnHost : kProductsOnDevice;
    const size_t whole = kColumns / std::gcd(kColumns, dim_);  // Whole examples fill such columns.
    piece_examples_ = std::max(floats / most_products / dim_ / whole, size_t{1}) * whole;
  }

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    const ConstMatrix x = pass.places[self.inputs[0]].value;
    Reserve(x.rows, false);
    pass.ops.RunRows(FoldPairs{vectors_, WeightsOf(pass, 0), Folded()});
    ForEachPiece(pass, x.rows, [&](DenseOps& ops, const Piece& piece, Scratch& scratch) {
      ops.RunRows(SplitVectors{dim_, x.Rows(piece.begin, piece.count), First(piece)});
      size_t column = 0;
      for (size_t l = 0; l < levels_.size(); ++l) {
        const Matrix maps = MapsOf(l, piece);
        const ConstMatrix z = Products(ops, l, piece, scratch);
        ops.Gemm({.transpose_a = true}, ProductWeights(pass, l), z, maps);
        const Matrix out = OutOf(maps, l);
        ops.RunRows(SumComponents{
            dim_, out, self.value.Rows(piece.begin, piece.count).Columns(column, out.rows)});
        column += out.rows;
      }
    });
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    const ConstMatrix dy = self.gradient;
    Reserve(dy.rows, true);
    const Write write_dx = input.learns ? input.NextGradient() : Write::kOver;
    ForEachPiece(pass, dy.rows, [&](DenseOps& ops, const Piece& piece, Scratch& scratch) {
      size_t column = dy.cols;
      for (size_t l = levels_.size(); l-- > 0;) {
        // The level above has written the gradient of the maps that it reads; with a split the
        // other maps get theirs from the output only.
        const Matrix out = OutOf(GradientOf(l, piece, scratch), l);
        column -= out.rows;
        const bool read_above = l + 1 < levels_.size() && !halved_;
        ops.RunRows(
            SumComponentsBackward{dim_, dy.Rows(piece.begin, piece.count).Columns(column, out.rows),
                                  read_above ? Write::kAdd : Write::kOver, out});
        LevelBackward(pass, ops, l, piece, scratch);
      }
      if (!input.learns) return;
      ops.RunRows(SplitVectorsBackward{dim_, FirstGradient(piece, scratch), write_dx,
                                       input.gradient.Rows(piece.begin, piece.count)});
    });
    AddWeightGradients(pass, dy.rows);
  }

 private:
  // Floats of Z at a time: on the host a quarter of a second-level cache, with its gradient a half.
  static constexpr size_t kProductsOnHost = size_t{1} << 16, kProductsOnDevice = size_t{1} << 24;
  static constexpr size_t kColumns = 16;  // Columns of a piece are a multiple: see OneThreadGemm().

  struct Level {
    explicit Level(DenseOps* ops) : maps(ops) {}
    size_t weight = 0, inputs = 0;  // First float in the flat array; rows of the weights.
    DeviceArray maps;               // [maps, columns] of each piece.
  };
  // Examples [begin, begin + count), with `cols` columns of maps from float `at` of an array of one
  // row on.
  struct Piece {
    size_t begin = 0, count = 0, cols = 0, at = 0;
  };
  // Arrays of a band, which live for one piece but for the gradients of the weights.
  struct Scratch {
    explicit Scratch(DenseOps* ops)
        : products(ops), products_gradient(ops), first_gradient(ops), weight_gradients(ops) {}
    DeviceArray products, products_gradient;  // [pairs, columns]
    DeviceArray first_gradient;               // [F, columns]
    DeviceArray weight_gradients;       // [all pairs, maps]: of all levels, one after another.
    std::deque<DeviceArray> gradients;  // [maps, columns] of each level.
    bool begun = false;                 // A piece has written weight_gradients.
  };

  // Returns the number of products in Z of a level.
  size_t PairsOf(size_t l) const {
    return l == 0 ? vectors_ * (vectors_ + 1) / 2 : levels_[l].inputs;
  }
  size_t BlocksOf(size_t rows) const { return (rows + piece_examples_ - 1) / piece_examples_; }
  size_t ColumnsOf(size_t examples) const {
    return (examples * dim_ + kColumns - 1) / kColumns * kColumns;
  }

  // Makes the arrays that bands use, because they must not.
  void Reserve(size_t rows, bool backward) {
    const size_t columns = ColumnsOf(std::min(rows, piece_examples_));
    const size_t all = ColumnsOf(rows);
    first_.Reserve(vectors_ * all);
    for (Level& level : levels_) level.maps.Reserve(maps_ * all);
    folded_.ReserveRows(PairsOf(0), maps_);
    size_t pairs = 0, pairs_max = 0;
    for (size_t l = 0; l < levels_.size(); ++l) {
      pairs += PairsOf(l);
      pairs_max = std::max(pairs_max, PairsOf(l));
    }
    const size_t bands = ops_.Bands(BlocksOf(rows));
    while (scratch_.size() < bands) scratch_.emplace_back(&ops_);
    for (size_t b = 0; b < bands; ++b) {
      Scratch& scratch = scratch_[b];
      scratch.products.Reserve(pairs_max * columns);
      if (!backward) continue;
      scratch.products_gradient.Reserve(pairs_max * columns);
      scratch.first_gradient.Reserve(vectors_ * columns);
      scratch.weight_gradients.Reserve(pairs * maps_);
      while (scratch.gradients.size() < levels_.size()) scratch.gradients.emplace_back(&ops_);
      for (DeviceArray& array : scratch.gradients) array.Reserve(maps_ * columns);
    }
  }

  template <typename Body>
  void ForEachPiece(Pass& pass, size_t rows, const Body& body) {
    pass.ops.RunBands(BlocksOf(rows), [&](DenseOps& ops, const Band& band) {
      Scratch& scratch = scratch_[band.index];
      scratch.begun = false;
      for (size_t p = band.first; p < band.first + band.count; ++p) {
        Piece piece;
        piece.begin = p * piece_examples_;
        piece.count = std::min(piece_examples_, rows - piece.begin);
        piece.cols = ColumnsOf(piece.count);
        piece.at = p * ColumnsOf(piece_examples_);
        body(ops, piece, scratch);
      }
    });
  }

  // ---- matrices of a piece.

  static Matrix In(const DeviceArray& array, size_t rows, const Piece& piece) {
    return {array.data() + rows * piece.at, rows, piece.cols, piece.cols};
  }
  static Matrix Of(const DeviceArray& array, size_t rows, const Piece& piece) {
    return {array.data(), rows, piece.cols, piece.cols};
  }
  Matrix First(const Piece& piece) const { return In(first_, vectors_, piece); }
  Matrix MapsOf(size_t l, const Piece& piece) const { return In(levels_[l].maps, maps_, piece); }
  // Returns the maps that level l reads besides the vectors.
  Matrix Before(size_t l, const Piece& piece) const {
    return l == 0 ? First(piece) : MapsOf(l - 1, piece).Rows(0, levels_[l].inputs / vectors_);
  }
  Matrix GradientOf(size_t l, const Piece& piece, const Scratch& scratch) const {
    return Of(scratch.gradients[l], maps_, piece);
  }
  Matrix FirstGradient(const Piece& piece, const Scratch& scratch) const {
    return Of(scratch.first_gradient, vectors_, piece);
  }
  // Returns the maps of level l that come out.
  Matrix OutOf(const Matrix& maps, size_t l) const {
    const size_t onward = halved_ && l + 1 < levels_.size() ? maps_ / 2 : 0;
    return maps.Rows(onward, maps_ - onward);
  }

  // ---- weights.

  ConstMatrix WeightsOf(const Pass& pass, size_t l) const {
    return {pass.dense + levels_[l].weight, levels_[l].inputs, maps_, maps_};
  }
  Matrix Folded() const { return {folded_.data(), PairsOf(0), maps_, RowStride(maps_)}; }
  ConstMatrix ProductWeights(const Pass& pass, size_t l) const {
    return l == 0 ? ConstMatrix(Folded()) : WeightsOf(pass, l);
  }
  Matrix BandGradient(const Scratch& scratch, size_t l) const {
    size_t before = 0;
    for (size_t i = 0; i < l; ++i) before += PairsOf(i);
    return {scratch.weight_gradients.data() + before * maps_, PairsOf(l), maps_, maps_};
  }

  // Adds the gradients of the bands in their order.
  void AddWeightGradients(Pass& pass, size_t rows) {
    const size_t bands = ops_.Bands(BlocksOf(rows));
    for (size_t l = 0; l < levels_.size(); ++l) {
      const Matrix whole{pass.dense_gradients + levels_[l].weight, levels_[l].inputs, maps_, maps_};
      const Matrix sum = l == 0 ? BandGradient(scratch_[0], 0) : whole;
      if (rows == 0) {
        pass.ops.FillZero(sum.data, sum.rows * maps_);
      } else if (l > 0) {
        pass.ops.Copy(Write::kOver, BandGradient(scratch_[0], l), sum);
      }
      for (size_t b = 1; b < bands; ++b) {
        pass.ops.Copy(Write::kAdd, BandGradient(scratch_[b], l), sum);
      }
      if (l == 0) pass.ops.RunRows(FoldPairsBackward{vectors_, sum, whole});
    }
  }

  // ---- a level.

  ConstMatrix Products(DenseOps& ops, size_t l, const Piece& piece, const Scratch& scratch) const {
    const Matrix z = Of(scratch.products, PairsOf(l), piece);
    ops.RunRows(PairProducts{l == 0, Before(l, piece), First(piece), z});
    return z;
  }

  void LevelBackward(const Pass& pass, DenseOps& ops, size_t l, const Piece& piece,
                     Scratch& scratch) const {
    const Matrix gradient = GradientOf(l, piece, scratch);
    const ConstMatrix z = Products(ops, l, piece, scratch);
    const bool top = l + 1 == levels_.size();
    ops.Gemm({.transpose_b = true, .write = scratch.begun ? Write::kAdd : Write::kOver}, z,
             gradient, BandGradient(scratch, l));
    if (l == 0) scratch.begun = true;
    const Matrix dz = Of(scratch.products_gradient, PairsOf(l), piece);
    ops.Gemm({}, ProductWeights(pass, l), gradient, dz);
    const Write write = top ? Write::kOver : Write::kAdd;
    const Matrix first_gradient = FirstGradient(piece, scratch);
    if (l == 0) {
      ops.RunRows(TwiceBackward{First(piece), dz, write, first_gradient});
      return;
    }
    const Matrix below = GradientOf(l - 1, piece, scratch).Rows(0, Before(l, piece).rows);
    ops.RunRows(MapsBackward{First(piece), dz, below});
    ops.RunRows(FirstBackward{Before(l, piece), dz, write, first_gradient});
  }

  uint32_t place_;
  size_t dim_, vectors_, maps_;
  bool halved_;
  size_t piece_examples_ = 1;
  DenseOps& ops_;
  std::deque<Level> levels_;  // Deques, because arrays must not move.
  std::deque<Scratch> scratch_;
  DeviceArray first_;   // [F, columns] of each piece: the vectors.
  DeviceArray folded_;  // [pairs, maps]: the weights of level 0.
};

}  // namespace

std::unique_ptr<Layer> NewCin(const LayerSite& site) { return std::make_unique<CinLayer>(site); }

}  // namespace hdps
