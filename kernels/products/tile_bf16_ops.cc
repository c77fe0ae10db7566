// Computes bf16 products by tiles: all threads lay out the operands once a product, then multiply.
#include <glog/logging.h>

#include <algorithm>

#include "kernels/host/float_memory.h"
#include "kernels/products/cpu_bf16_ops.h"
#include "kernels/products/product_tiles.h"
#include "kernels/products/tile_gemm.h"

namespace hdps {
namespace {

// Memory for a tiled operand, kept for reuse.
class TileMemory {
 public:
  TiledOperand Reserve(size_t side, size_t depth) {
    const size_t floats = (TiledOperand::Numbers(side, depth) + 1) / 2;
    if (floats > floats_) {
      data_ = AllocateFloats(floats);
      floats_ = floats;
    }
    return {reinterpret_cast<uint16_t*>(data_.get()), TiledOperand::Blocks(depth)};
  }

 private:
  FloatMemory data_;
  size_t floats_ = 0;
};

// The pieces of a product that threads take. Results do not depend on the cuts.
class Pieces {
 public:
  // `rows_max` limits the rows of the left operand in a piece: they and their sums should stay in
  // the second-level cache.
  Pieces(size_t rows, size_t cols, size_t rows_max, int threads)
      : rows_(rows), cols_(cols), piece_rows_(rows_max) {
    const size_t wanted = threads == 1 ? 1 : 4 * static_cast<size_t>(threads);
    while (count() < wanted && piece_rows_ + piece_cols_ > 2 * kSideMin) {
      size_t& side = piece_rows_ >= piece_cols_ ? piece_rows_ : piece_cols_;
      side /= 2;
    }
  }
  size_t count() const {
    return ProductTiles::Blocks(rows_, piece_rows_) * ProductTiles::Blocks(cols_, piece_cols_);
  }
  // Consecutive pieces have the same left operand.
  TilePiece operator[](size_t index) const {
    const size_t across = ProductTiles::Blocks(cols_, piece_cols_);
    const size_t row = index / across * piece_rows_, col = index % across * piece_cols_;
    return {row, std::min(piece_rows_, rows_ - row), col, std::min(piece_cols_, cols_ - col)};
  }

 private:
  static constexpr size_t kSideMin = 64;
  size_t rows_, cols_, piece_rows_, piece_cols_ = 256;
};
// Row limits for a row-major left operand, and for a tiled, deep one.
constexpr size_t kRowsOfMatrix = 128, kRowsOfTiles = 256;

class TileBf16Ops : public Bf16Ops {
 public:
  TileBf16Ops(Executor& executor, Bf16Products by, TileGemm gemm, TileLoops loops)
      : executor_(executor), by_(by), gemm_(gemm), loops_(loops) {}

  std::string Arithmetic() const override {
    return "bf16 by " + std::string(Bf16ProductsName(by_));
  }
  void Narrow(ConstMatrix from, Bf16Matrix to) override { NarrowMatrix(executor_, from, to); }

  void Gemm(const GemmSpec& spec, Bf16Matrix a, Bf16Matrix b, const Bf16Tile& c) override {
    CHECK(spec.write == Write::kOver || c.fp32.data != nullptr) << "no sums in bf16";
    if (c.rows() == 0 || c.cols() == 0) return;
    const size_t depth = spec.transpose_a ? a.rows : a.cols;
    TileProduct product;
    product.write = spec.write;
    product.bias = spec.bias;
    product.relu = spec.relu;
    product.c = c;
    product.right = right_.Reserve(c.cols(), depth);
    const size_t rights = TiledOperand::Blocks(c.cols());
    size_t lefts = 0;
    if (spec.transpose_a) {
      lefts = TiledOperand::Blocks(c.rows());
      product.left_tiles = left_.Reserve(c.rows(), depth);
    } else {
      product.left = a;
    }
    executor_.ParallelFor(rights + lefts, [&](size_t index) {
      if (index >= rights) return loops_.left_of_transposed(a, index - rights, product.left_tiles);
      if (spec.transpose_b) return loops_.right_of_transposed(b, index, product.right);
      loops_.right(b, index, product.right, nullptr);
    });
    const Pieces pieces(c.rows(), c.cols(), kRowsOfMatrix, executor_.threads());
    executor_.ParallelFor(pieces.count(), [&](size_t index) { gemm_(product, pieces[index]); });
  }

  void BackwardOfDense(const Bf16DenseBackward& layer) override {
    CHECK(!layer.relu_below || layer.dx.fp32.data == nullptr);
    const size_t units = layer.dy.cols, rows = layer.dy.rows;
    TileProduct below, weights;
    below.left = layer.dy;
    below.write = layer.write_dx;
    if (layer.relu_below) below.masked_by = layer.x;
    below.c = layer.dx;
    weights.c.fp32 = layer.weight_gradient;
    const bool wants_weights = layer.weight_gradient.data != nullptr;
    const size_t inputs_below = layer.dx.cols();
    const size_t inputs_above = wants_weights ? layer.x.cols : 0;
    below.right = right_.Reserve(inputs_below, units);
    weights.left_tiles = left_.Reserve(inputs_above, rows);
    // The bias gradient is summed while dy is laid out.
    const bool wants_dy = wants_weights || layer.bias_gradient != nullptr;
    weights.right = dy_.Reserve(wants_dy ? units : 0, rows);
    const size_t dy_blocks = wants_dy ? TiledOperand::Blocks(units) : 0;
    const size_t x_blocks = TiledOperand::Blocks(inputs_above);
    const size_t weight_blocks = TiledOperand::Blocks(inputs_below);
    executor_.ParallelFor(dy_blocks + x_blocks + weight_blocks, [&](size_t index) {
      if (index < dy_blocks) return LayOutDy(layer, index, weights.right);
      index -= dy_blocks;
      if (index < x_blocks) return loops_.left_of_transposed(layer.x, index, weights.left_tiles);
      loops_.right_of_transposed(layer.weights, index - x_blocks, below.right);
    });
    const int threads = executor_.threads();
    const Pieces dx(layer.dx.rows(), inputs_below, kRowsOfMatrix, threads);
    const Pieces dw(inputs_above, wants_weights ? units : 0, kRowsOfTiles, threads);
    executor_.ParallelFor(dx.count() + dw.count(), [&](size_t index) {
      if (index < dw.count()) return gemm_(weights, dw[index]);
      gemm_(below, dx[index - dw.count()]);
    });
  }

 private:
  void LayOutDy(const Bf16DenseBackward& layer, size_t block, TiledOperand to) const {
    float sums[kBlockSide];
    loops_.right(layer.dy, block, to, layer.bias_gradient == nullptr ? nullptr : sums);
    if (layer.bias_gradient == nullptr) return;
    const size_t first = block * kBlockSide;
    std::copy_n(sums, std::min(kBlockSide, layer.dy.cols - first), layer.bias_gradient + first);
  }

  Executor& executor_;
  const Bf16Products by_;
  const TileGemm gemm_;
  const TileLoops loops_;
  TileMemory right_, left_, dy_;
};

}  // namespace

std::unique_ptr<Bf16Ops> NewTileBf16Ops(Executor& executor, Bf16Products by) {
  if (by == Bf16Products::kPlainTiles) {
    return std::make_unique<TileBf16Ops>(executor, by, PlainTileGemm(), PlainTileLoops());
  }
  const TileGemm gemm = AmxTileGemm();
  if (gemm == nullptr) return nullptr;
  return std::make_unique<TileBf16Ops>(executor, by, gemm, Avx512TileLoops());
}

}  // namespace hdps
