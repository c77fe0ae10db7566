// Cuts a product into tiles; each is one call of a library on one thread.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/platform/executor.h"
#include "kernels/products/gemm.h"

namespace hdps {

// A part of the result c of a product, and the operands that it needs.
struct ProductTile {
  size_t row, rows, col, cols;

  template <typename AnyMatrix>
  AnyMatrix Of(AnyMatrix c) const {
    return c.Rows(row, rows).Columns(col, cols);
  }
  template <typename AnyMatrix>
  AnyMatrix Left(const GemmSpec& spec, AnyMatrix a) const {
    return spec.transpose_a ? a.Columns(row, rows) : a.Rows(row, rows);
  }
  template <typename AnyMatrix>
  AnyMatrix Right(const GemmSpec& spec, AnyMatrix b) const {
    return spec.transpose_b ? b.Rows(col, cols) : b.Columns(col, cols);
  }
  GemmSpec SpecOf(GemmSpec spec) const {
    if (spec.bias != nullptr) spec.bias += col;
    return spec;
  }
};

// Pieces that the work of an operation is cut into, so that several threads have some.
inline constexpr size_t kTilesWanted = 16;

// The tiles of a result [rows, cols], a function of its shape only. They start wide, since a
// library packs its operands in each call, and shrink until several threads have work.
class ProductTiles {
 public:
  ProductTiles(size_t rows, size_t cols) : rows_(rows), cols_(cols) {
    constexpr size_t kSideMin = 64;
    while (count() < kTilesWanted) {
      size_t& side =
          std::min(rows, tile_rows_) >= std::min(cols, tile_cols_) ? tile_rows_ : tile_cols_;
      if (side <= kSideMin) break;
      side /= 2;
    }
  }

  size_t count() const { return Blocks(rows_, tile_rows_) * Blocks(cols_, tile_cols_); }
  ProductTile operator[](size_t index) const {
    const size_t across = Blocks(cols_, tile_cols_);
    const size_t row = index / across * tile_rows_, col = index % across * tile_cols_;
    return {row, std::min(tile_rows_, rows_ - row), col, std::min(tile_cols_, cols_ - col)};
  }

  static size_t Blocks(size_t count, size_t block) { return (count + block - 1) / block; }

 private:
  size_t rows_, cols_, tile_rows_ = 512, tile_cols_ = 512;
};

// Columns in one piece of work that sums over rows.
inline constexpr size_t kSumColumns = 64;

// Computes the three results of a dense layer's backward as one list of pieces, so that a thread
// that is done with one product goes on with the next: below(tile) for dx, weights(tile) for the
// gradient of the weights, sum(block) for kSumColumns columns of the bias gradient. A result that
// is not wanted has no columns.
template <typename Below, typename Weights, typename Sum>
void RunDenseBackward(Executor& executor, const ProductTiles& dx, const ProductTiles& dw,
                      size_t bias_cols, const Below& below, const Weights& weights,
                      const Sum& sum) {
  const size_t sums = ProductTiles::Blocks(bias_cols, kSumColumns);
  const size_t products = dx.count() + dw.count();
  if (products + sums == 0) return;
  executor.ParallelFor(products + sums, [&](size_t index) {
    if (index < dx.count()) return below(dx[index]);
    if (index < products) return weights(dw[index - dx.count()]);
    sum(index - products);
  });
}

}  // namespace hdps
