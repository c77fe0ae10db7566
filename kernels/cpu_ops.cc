// Dense operations on the CPU: plain loops over blocks of rows, and BLAS over tiles.
#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/job/spec/pooling.h"
#include "kernels/dense_ops.h"
#include "kernels/host/chain_rows.h"
#include "kernels/host/cpu_row_slabs.h"
#include "kernels/host/cross_rows.h"
#include "kernels/host/float_memory.h"
#include "kernels/host/half_floats.h"
#include "kernels/host/row_blocks.h"
#include "kernels/host/slab_update.h"
#include "kernels/products/cpu_bf16_ops.h"
#include "kernels/products/product_tiles.h"
#include "kernels/tasks/task_bodies.h"
#include "kernels/vector_width.h"

namespace hdps {
namespace {

size_t Blocks(size_t count, size_t block) { return (count + block - 1) / block; }

// Sets dy to zero where the ReLU's output y is not positive.
HDPS_INLINE void MaskRelu(ConstMatrix y, Matrix dy) {
  for (size_t r = 0; r < dy.rows; ++r) {
    const float* __restrict v = y.Row(r);
    float* __restrict d = dy.Row(r);
    for (size_t j = 0; j < dy.cols; ++j) d[j] = v[j] > 0.0f ? d[j] : 0.0f;
  }
}

// DenseOps::ActivationBackward for one block of columns.
HDPS_INLINE void ActivateBack(ConstMatrix y, bool relu, Matrix dy, size_t block,
                              float* bias_gradient) {
  const size_t first = block * kSumColumns;
  const size_t cols = std::min(kSumColumns, dy.cols - first);
  float sums[kSumColumns] = {};
  for (size_t r = 0; r < dy.rows; ++r) {
    float* __restrict d = dy.Row(r) + first;
    if (relu) {
      const float* __restrict v = y.Row(r) + first;
      for (size_t j = 0; j < cols; ++j) d[j] = v[j] > 0.0f ? d[j] : 0.0f;
    }
    for (size_t j = 0; j < cols; ++j) sums[j] += d[j];
  }
  std::copy_n(sums, cols, bias_gradient + first);
}

class CpuBagIndex : public BagIndex {
 public:
  std::vector<Bags> features;
  uint32_t num_rows = 0;
  std::vector<uint32_t> largest;  // [features, bags, dim]: from the last Pool under kMax.
};

void Multiply(const ProductTile& tile, const GemmSpec& spec, ConstMatrix a, ConstMatrix b,
              Matrix c) {
  BlasGemm(tile.SpecOf(spec), tile.Left(spec, a), tile.Right(spec, b), tile.Of(c));
}

class CpuOps : public DenseOps {
 public:
  CpuOps(Executor& executor, Bf16Products bf16)
      : executor_(executor), bf16_(NewCpuBf16Ops(executor, bf16)), slabs_(executor) {}

  DeviceKind device() const override { return DeviceKind::kCpu; }
  std::string Arithmetic() const override {
    return CpuArithmetic() + (bf16_ == nullptr ? "" : ", " + bf16_->Arithmetic());
  }
  Bf16Ops* bf16() const override { return bf16_.get(); }

  float* Allocate(size_t floats) override { return AllocateFloats(floats).release(); }
  void Free(float* data) override { FreeFloats()(data); }
  void Upload(std::span<const float> from, float* to) override {
    std::copy(from.begin(), from.end(), to);
  }
  void UploadRows(std::span<const float> from, Matrix to) override {
    CHECK_EQ(from.size(), to.rows * to.cols);
    Copy(Write::kOver, {from.data(), to.rows, to.cols, to.cols}, to);
  }
  void FetchLater(const float* from, std::span<float> to) override {
    std::copy_n(from, to.size(), to.begin());
  }
  void FillZero(float* data, size_t floats) override { std::fill_n(data, floats, 0.0f); }

  void SetRowsAlike(bool alike) override {
    rows_alike_ = alike;
    if (bf16_ != nullptr) bf16_->SetRowsAlike(alike);
  }

  void Gemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) override {
    const ProductTiles tiles(c.rows, c.cols);
    const GemmSpec each = spec.WithRowsAlike(rows_alike_);
    Run(tiles.count(), [&](size_t index) { Multiply(tiles[index], each, a, b, c); });
  }

  void ActivationBackward(ConstMatrix y, bool relu, Matrix dy, float* bias_gradient) override {
    Run(Blocks(dy.cols, kSumColumns), [&](size_t block) {
      WithVectors(
          width_, [&]() __attribute__((always_inline)) {
            ActivateBack(y, relu, dy, block, bias_gradient);
          });
    });
  }

  // All results at once: a thread that is done with one product goes on with the next.
  bool BackwardOfDense(const DenseBackward& layer) override {
    const bool wants_dx = layer.dx.data != nullptr;
    const ProductTiles dx(wants_dx ? layer.dx.rows : 0, layer.dx.cols);
    const ProductTiles dw(layer.weight_gradient.rows, layer.weight_gradient.cols);
    RunDenseBackward(
        executor_, dx, dw, layer.bias_gradient == nullptr ? 0 : layer.dy.cols,
        [&](const ProductTile& tile) {
          Multiply(tile, {.transpose_b = true, .write = layer.write_dx}, layer.dy, layer.weights,
                   layer.dx);
          if (!layer.relu_below) return;
          WithVectors(
              width_, [&]() __attribute__((always_inline)) {
                MaskRelu(tile.Of(layer.x), tile.Of(layer.dx));
              });
        },
        [&](const ProductTile& tile) {
          Multiply(tile, {.transpose_a = true}, layer.x, layer.dy, layer.weight_gradient);
        },
        [&](size_t block) {
          WithVectors(
              width_, [&]() __attribute__((always_inline)) {
                ActivateBack({}, false, layer.dy, block, layer.bias_gradient);
              });
        });
    return layer.relu_below && wants_dx;
  }

  void Copy(Write write, ConstMatrix x, Matrix y) override {
    RunRows(y.rows, y.cols, [&](size_t first, size_t count) {
      for (size_t r = first; r < first + count; ++r) {
        const float* __restrict from = x.Row(r);
        float* __restrict to = y.Row(r);
        if (write == Write::kOver) {
          std::copy_n(from, y.cols, to);
        } else {
          for (size_t j = 0; j < y.cols; ++j) to[j] += from[j];
        }
      }
    });
  }

  void RunRows(const RowTask& task) override {
    std::visit(
        [this](const auto& each) {
          const Matrix over = each.Over();
          size_t floats = over.cols;
          if constexpr (requires { each.FloatsARow(); }) floats = each.FloatsARow();
          RunRows(over.rows, floats, [&](size_t first, size_t count) {
            if constexpr (requires { HostRows(width_, each, first, count); }) {
              return HostRows(width_, each, first, count);
            }
            for (size_t r = first; r < first + count; ++r) {
              if constexpr (requires { each(r, r); }) {
                for (size_t j = 0; j < over.cols; ++j) each(r, j);
              } else {
                each(r);
              }
            }
          });
        },
        task);
  }

  size_t Bands(size_t count) const override { return std::clamp<size_t>(count, 1, kTilesWanted); }
  void RunBands(size_t count, const BandBody& body) override;

  void LoadBags(std::span<const Bags> features, uint32_t num_rows,
                std::unique_ptr<BagIndex>* index) override {
    if (*index == nullptr) *index = std::make_unique<CpuBagIndex>();
    auto& loaded = static_cast<CpuBagIndex&>(**index);
    loaded.features.assign(features.begin(), features.end());
    loaded.num_rows = num_rows;
  }

  void Pool(BagIndex& index, const PoolSpec& spec, const RowSpans<const float>& rows,
            Matrix out) override {
    auto& loaded = BeginPool(index, spec, out.rows);
    RunRows(out.rows, loaded.features.size() * spec.dim, [&](size_t first, size_t count) {
      PoolBlock(loaded, spec, rows, first, out.Rows(first, count));
    });
  }
  void Pool(BagIndex& index, const PoolSpec& spec, const RowSpans<const float>& rows,
            Bf16Matrix out) override {
    auto& loaded = BeginPool(index, spec, out.rows);
    RunRows(out.rows, loaded.features.size() * spec.dim, [&](size_t first, size_t count) {
      thread_local std::vector<float> block;  // Rounded while in the cache.
      block.resize(count * out.cols);
      const Matrix pooled{block.data(), count, out.cols, out.cols};
      PoolBlock(loaded, spec, rows, first, pooled);
      WithVectors(
          width_, [&]() __attribute__((always_inline)) {
            for (size_t r = 0; r < count; ++r) {
              NarrowEach<DType::kBf16>(pooled.Row(r), out.cols, out.Row(first + r));
            }
          });
    });
  }

  void PoolBackward(BagIndex& index, const PoolSpec& spec, ConstMatrix gradient, Write write,
                    const RowSpans<float>& row_gradients) override {
    AddToRows(index, spec, gradient, write, row_gradients);
  }
  void PoolBackward(BagIndex& index, const PoolSpec& spec, Bf16Matrix gradient, Write write,
                    const RowSpans<float>& row_gradients) override {
    AddToRows(index, spec, gradient, write, row_gradients);
  }

  std::unique_ptr<UniqueRowGemm> NewRowProducts() override {
    return std::make_unique<UniqueRowGemm>(executor_);
  }
  std::unique_ptr<FieldAttention> NewFieldAttention() override {
    return std::make_unique<FieldAttention>(executor_);
  }
  std::unique_ptr<TargetAttention> NewTargetAttention() override {
    return std::make_unique<TargetAttention>(executor_);
  }

  void Dot(const DotInputs& in, Matrix out) override {
    RunRows(out.rows, in.embeddings.cols, [&](size_t first, size_t count) {
      hdps::Dot(in.Rows(first, count), out.Rows(first, count));
    });
  }
  void DotBackward(const DotInputs& in, ConstMatrix g, const DotGradients& out) override {
    RunRows(g.rows, in.embeddings.cols, [&](size_t first, size_t count) {
      DotGradients part = out;
      part.embeddings = out.embeddings.Rows(first, count);
      part.dense = out.dense.Rows(first, count);
      hdps::DotBackward(in.Rows(first, count), g.Rows(first, count), part);
    });
  }

  void Loss(const LossInput& input, ConstMatrix logits, Matrix gradient,
            std::span<float> probabilities, double* sum) override {
    losses_.resize(logits.rows);
    RunRows(LossRows{.kind = input.kind,
                     .logits = logits,
                     .labels = input.labels,
                     .gradient = gradient,
                     .probabilities = probabilities.empty() ? nullptr : probabilities.data(),
                     .losses = losses_.data(),
                     .weights = input.weights,
                     .positive_weight = input.positive_weight});
    *sum = 0;
    for (const double loss : losses_) *sum += loss;
  }

  void LoadSlots(std::span<const uint32_t> slots, std::unique_ptr<SlabSlots>* loaded) override {
    slabs_.Load(slots, loaded);
  }
  void BringOutside(SlabSlots& slots, uint32_t dim, std::span<const float> outside,
                    float* rows) override {
    slabs_.CopyOutside(slots, dim, outside.data(), rows);
  }
  void GatherRows(SlabSlots& slots, const RowSlab& slab, float* rows) override {
    slabs_.Gather(slots, slab, rows);
  }
  void FetchOutside(SlabSlots& slots, uint32_t dim, const float* rows,
                    std::span<float> to) override {
    slabs_.CopyOutside(slots, dim, rows, to.data());
  }
  void UpdateRows(const RowUpdate& update, SlabSlots& slots, const float* gradients,
                  const RowSlab& slab, float* not_finite) override {
    slabs_.Update(update, slots, gradients, slab, not_finite);
  }
  void FetchRowSquares(const RowUpdate& update, SlabSlots& slots, const float* gradients,
                       const RowSlab& slab, std::span<double> squares, float* not_finite) override {
    slabs_.FindSquares(update, slots, gradients, slab, squares, not_finite);
  }
  void ScatterRows(Write write, SlabSlots& slots, const float* rows, float scale,
                   const RowSlab& slab) override {
    slabs_.Scatter(write, slots, rows, scale, slab);
  }
  void UpdateFirstRows(const RowUpdate& update, size_t count, const float* gradients,
                       const RowSlab& slab) override {
    slabs_.UpdateFirst(update, count, gradients, slab);
  }
  void ReadSlabs(SlabSlots& slots, std::span<const SlabRows<float>> rows) override {
    slabs_.ReadRows(slots, rows);
  }
  void WriteSlabs(SlabSlots& slots, std::span<const SlabRows<const float>> rows) override {
    slabs_.WriteRows(slots, rows);
  }

 private:
  template <typename Gradient>
  void AddToRows(const BagIndex& index, const PoolSpec& spec, const Gradient& gradient, Write write,
                 const RowSpans<float>& row_gradients) {
    const auto& loaded = static_cast<const CpuBagIndex&>(index);
    CHECK_EQ(row_gradients.size(), size_t{loaded.num_rows} * spec.dim);
    for (size_t p = 0; write == Write::kOver && p < row_gradients.count(); ++p) {
      std::ranges::fill(row_gradients.piece(p), 0.0f);
    }
    // Every slice reads all keys, so more slices than this cost more than they gain; for rows of
    // one float, two already do. The result of a row does not depend on the slices.
    const int slices_max = spec.dim == 1 ? 1 : 4;
    const auto slices = static_cast<uint32_t>(std::min(executor_.threads(), slices_max));
    Run(slices, [&](size_t slice) {
      const RowSlice part{static_cast<uint32_t>(slice), slices};
      for (size_t f = 0; f < loaded.features.size(); ++f) {
        const Gradient of_feature =
            spec.combine == Combine::kConcat ? gradient.Columns(f * spec.dim, spec.dim) : gradient;
        if (spec.pooling == Pooling::kMax) {
          PoolBagsMaxBackward(loaded.features[f],
                              loaded.largest.data() + f * gradient.rows * spec.dim, part,
                              of_feature, row_gradients);
        } else {
          PoolBagsBackward(loaded.features[f], spec.pooling, part, of_feature, row_gradients);
        }
      }
    });
  }

  template <typename Body>
  void Run(size_t count, const Body& body) {
    ForEachIndex(executor_, count, body);
  }
  template <typename Body>
  void RunRows(size_t rows, size_t floats_a_row, const Body& body) {
    ForRowBlocks(executor_, rows, floats_a_row, body);
  }

  static CpuBagIndex& BeginPool(BagIndex& index, const PoolSpec& spec, size_t num_bags) {
    auto& loaded = static_cast<CpuBagIndex&>(index);
    if (spec.pooling == Pooling::kMax) {
      loaded.largest.resize(loaded.features.size() * num_bags * spec.dim);
    }
    return loaded;
  }

  // Pools bags [first, first + out.rows) of all features.
  static void PoolBlock(CpuBagIndex& loaded, const PoolSpec& spec,
                        const RowSpans<const float>& rows, size_t first, Matrix out) {
    const auto& features = loaded.features;
    for (size_t f = 0; f < features.size(); ++f) {
      const bool side_by_side = spec.combine == Combine::kConcat;
      const Bags bags = features[f].Part(first, out.rows);
      const Write write = side_by_side || f == 0 ? Write::kOver : Write::kAdd;
      const Matrix pooled = side_by_side ? out.Columns(f * spec.dim, spec.dim) : out;
      if (spec.pooling == Pooling::kMax) {
        const size_t num_bags = loaded.largest.size() / (features.size() * spec.dim);
        PoolBagsMax(bags, rows, write, pooled,
                    loaded.largest.data() + (f * num_bags + first) * spec.dim);
      } else {
        PoolBags(bags, spec.pooling, rows, write, pooled);
      }
    }
  }

  Executor& executor_;
  const std::unique_ptr<Bf16Ops> bf16_;
  const VectorWidth width_ = WidestVectors();
  CpuRowSlabs slabs_;
  std::vector<double> losses_;  // Scratch of Loss().
  std::unique_ptr<CpuOps> of_bands_;

 protected:
  bool rows_alike_ = false;  // As SetRowsAlike() says.
};

// The ops of a band. A product is computed as a whole; bands may call at once, since the calls that
// they may make keep nothing.
class BandOps : public CpuOps {
 public:
  explicit BandOps(std::unique_ptr<Executor> inline_executor)
      : CpuOps(*inline_executor, Bf16Products::kNone), executor_(std::move(inline_executor)) {}
  void Gemm(const GemmSpec& spec, ConstMatrix a, ConstMatrix b, Matrix c) override {
    OneThreadGemm(spec.WithRowsAlike(rows_alike_), a, b, c);
  }

 private:
  const std::unique_ptr<Executor> executor_;
};

void CpuOps::RunBands(size_t count, const BandBody& body) {
  if (of_bands_ == nullptr) of_bands_ = std::make_unique<BandOps>(NewInlineExecutor());
  of_bands_->SetRowsAlike(rows_alike_);
  const size_t bands = Bands(count);
  Run(bands, [&](size_t index) {
    const size_t first = count * index / bands;
    body(*of_bands_, {index, first, count * (index + 1) / bands - first});
  });
}

}  // namespace

std::unique_ptr<DenseOps> NewCpuOps(Executor& executor, Bf16Products bf16) {
  return std::make_unique<CpuOps>(executor, bf16);
}

}  // namespace hdps
