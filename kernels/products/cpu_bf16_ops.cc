// Computes tiles of bf16 products, and the passes over matrices around them.
#include "kernels/products/cpu_bf16_ops.h"

#include <glog/logging.h>

#include <algorithm>

#include "kernels/host/half_floats.h"
#include "kernels/products/product_tiles.h"
#include "kernels/vector_width.h"

namespace hdps {
namespace {

// Sets d to zero where the ReLU's output x is not positive: zero, or with a set sign.
HDPS_INLINE void MaskRelu(Bf16Matrix x, Bf16Matrix d) {
  for (size_t r = 0; r < d.rows; ++r) {
    const uint16_t* __restrict value = x.Row(r);
    uint16_t* __restrict to = d.Row(r);
    for (size_t j = 0; j < d.cols; ++j) {
      to[j] = static_cast<int16_t>(value[j]) > 0 ? to[j] : uint16_t{0};
    }
  }
}

// sums[j] = the sum of dy's column j over the rows, in their order.
HDPS_INLINE void SumRows(Bf16Matrix dy, float* to) {
  float sums[kSumColumns] = {};
  for (size_t r = 0; r < dy.rows; ++r) {
    const uint16_t* __restrict row = dy.Row(r);
    for (size_t j = 0; j < dy.cols; ++j) sums[j] += FromBf16(row[j]);
  }
  std::copy_n(sums, dy.cols, to);
}

class CpuBf16Ops : public Bf16Ops {
 public:
  CpuBf16Ops(Executor& executor, Bf16Products by) : executor_(executor), by_(by) {}

  std::string Arithmetic() const override {
    return "bf16 by " + std::string(Bf16ProductsName(by_));
  }

  void SetRowsAlike(bool alike) override { rows_alike_ = alike; }
  void Narrow(ConstMatrix from, Bf16Matrix to) override { NarrowMatrix(executor_, from, to); }

  void Gemm(const GemmSpec& spec, Bf16Matrix a, Bf16Matrix b, const Bf16Tile& c) override {
    const ProductTiles tiles(c.rows(), c.cols());
    executor_.ParallelFor(tiles.count(),
                          [&](size_t index) { Multiply(tiles[index], spec, a, b, c); });
  }

  void BackwardOfDense(const Bf16DenseBackward& layer) override {
    CHECK(!layer.relu_below || layer.dx.fp32.data == nullptr);
    const ProductTiles dx(layer.dx.rows(), layer.dx.cols());
    const ProductTiles dw(layer.weight_gradient.rows, layer.weight_gradient.cols);
    const size_t bias_cols = layer.bias_gradient == nullptr ? 0 : layer.dy.cols;
    RunDenseBackward(
        executor_, dx, dw, bias_cols,
        [&](const ProductTile& tile) {
          Multiply(tile, {.transpose_b = true, .write = layer.write_dx}, layer.dy, layer.weights,
                   layer.dx);
          if (!layer.relu_below) return;
          WithVectors(
              width_, [&]() __attribute__((always_inline)) {
                MaskRelu(tile.Of(layer.x), tile.Of(layer.dx.bf16));
              });
        },
        [&](const ProductTile& tile) {
          Multiply(tile, {.transpose_a = true}, layer.x, layer.dy, {layer.weight_gradient, {}});
        },
        [&](size_t block) {
          const size_t first = block * kSumColumns;
          const size_t cols = std::min(kSumColumns, bias_cols - first);
          WithVectors(
              width_, [&]() __attribute__((always_inline)) {
                SumRows(layer.dy.Columns(first, cols), layer.bias_gradient + first);
              });
        });
  }

 private:
  void Multiply(const ProductTile& tile, const GemmSpec& spec, Bf16Matrix a, Bf16Matrix b,
                const Bf16Tile& c) const {
    Bf16Tile part;
    if (c.fp32.data != nullptr) {
      part.fp32 = tile.Of(c.fp32);
    } else {
      part.bf16 = tile.Of(c.bf16);
    }
    const GemmSpec of_tile = tile.SpecOf(spec).WithRowsAlike(rows_alike_);
    Bf16Gemm(by_, of_tile, tile.Left(spec, a), tile.Right(spec, b), part);
  }

  Executor& executor_;
  const Bf16Products by_;
  bool rows_alike_ = false;
  const VectorWidth width_ = WidestVectors();
};

}  // namespace

void NarrowMatrix(Executor& executor, ConstMatrix from, Bf16Matrix to) {
  // Numbers rounded by one thread: large against the cost of handing them out, small against the
  // cache.
  constexpr size_t kBlockFloats = 16384;
  const size_t rows = std::max<size_t>(1, kBlockFloats / std::max<size_t>(1, to.cols));
  const VectorWidth width = WidestVectors();
  executor.ParallelFor(ProductTiles::Blocks(to.rows, rows), [&](size_t block) {
    const size_t end = std::min(to.rows, (block + 1) * rows);
    WithVectors(
        width, [&]() __attribute__((always_inline)) {
          for (size_t r = block * rows; r < end; ++r) {
            NarrowEach<DType::kBf16>(from.Row(r), to.cols, to.Row(r));
          }
        });
  });
}

std::unique_ptr<Bf16Ops> NewCpuBf16Ops(Executor& executor, Bf16Products by) {
  if (by == Bf16Products::kNone) return nullptr;
  if (by == Bf16Products::kAmx || by == Bf16Products::kPlainTiles) {
    std::unique_ptr<Bf16Ops> tiles = NewTileBf16Ops(executor, by);
    if (tiles != nullptr) return tiles;
  }
  return std::make_unique<CpuBf16Ops>(executor, by);
}

}  // namespace hdps
