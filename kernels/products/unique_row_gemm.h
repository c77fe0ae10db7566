// A dense layer on embeddings, computed once a distinct row instead of once an example.
//
// The layer y = act(sum over features f of pooled_f W_f + x W_x + b) multiplies the same row by the
// same W_f as often as the row occurs. Here P_f = U_f W_f, with U_f the distinct rows of feature f,
// and y gathers rows of P_f; backward, G_f sums the rows of dy that used a row, and then
// dU_f = G_f W_f^T, dW_f = U_f^T G_f. Both agree with the plain layer up to the rounding of sums in
// another order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"
#include "kernels/host/feature_rows.h"
#include "kernels/host/float_memory.h"
#include "kernels/host/gather_sum.h"
#include "kernels/matrix.h"
#include "kernels/products/small_gemm.h"
#include "kernels/row_spans.h"
#include "kernels/vector_width.h"

namespace hdps {

enum class Pooling : uint8_t;

// Whether that is faster than the plain layer for a batch, by constants measured on x86-64: a
// function of the batch and the layer alone, so every run and every worker decides alike.
struct UniqueRowGemmShape {
  size_t keys = 0;         // Of all features of the batch.
  size_t unique_rows = 0;  // Of the table.
  uint32_t dim = 0, units = 0;
};
bool UniqueRowGemmPays(const UniqueRowGemmShape& shape);

// Columns of the layer's input that are not embeddings.
struct PlainColumns {
  ConstMatrix x;       // [n, columns]
  size_t first_input;  // Row of the layer's weights that the first column meets.
};

struct RowLayer {
  RowSpans<const float> rows;  // [num_rows, dim] of the table.
  uint32_t dim = 0;
  ConstMatrix weights;     // [inputs, units]
  size_t first_input = 0;  // Feature f meets the weights' rows first_input + f * dim onwards.
  std::span<const PlainColumns> plain;
  const float* bias = nullptr;  // [units]
  bool relu = false;
};

struct RowLayerGradients {
  Matrix weights;         // [inputs, units], replaced.
  float* bias = nullptr;  // [units], replaced.
  RowSpans<float> rows;   // [num_rows, dim]
  Write write_rows = Write::kOver;
  // Also turn dy into the gradient of the sum before the activation, for whoever needs it.
  bool mask_dy = false;
};

// Scratch memory for pieces of work that run side by side, kept for the next ones.
class TileScratch {
 public:
  struct Block {
    FloatMemory floats;
    size_t size = 0;
  };
  // At least `floats` floats holding anything; what came back last goes out first.
  Block Take(size_t floats) HDPS_EXCLUDES(mutex_);
  void GiveBack(Block block) HDPS_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::vector<Block> free_ HDPS_GUARDED_BY(mutex_);
};

// Invariant: results depend on the arguments alone, never on the number of threads nor on the
// pieces that rows lie in: sums run in order of feature, then of bag, inside tiles of kGatherTile
// units that are taken one after the other.
class UniqueRowGemm {
 public:
  explicit UniqueRowGemm(Executor& executor);

  // The features' bags over one table of `num_rows` rows, for the passes until the next call.
  void Load(std::span<const Bags> features, Pooling pooling, uint32_t num_rows);
  void Forward(const RowLayer& layer, Matrix y);  // y [n, units]
  // y is what Forward gave, dy [n, units] the gradient of it.
  void Backward(const RowLayer& layer, ConstMatrix y, Matrix dy, const RowLayerGradients& out);

 private:
  // Rows up to here, times a tile, are small products: their weights stay in the first-level cache.
  static constexpr uint32_t kSmallDimMax = 128;

  // Units [first, first + count) of the layer; matrices of a stripe have `width` columns, whole
  // tiles.
  struct Stripe {
    size_t first, count, width;
  };
  static std::vector<Stripe> StripesOf(size_t units, size_t width);
  ConstMatrix RowsOf(const RowLayer& layer, size_t field) const;
  static ConstMatrix WeightsOf(const RowLayer& layer, size_t field, const Stripe& stripe);
  void CopyScatteredRows(const RowLayer& layer);

  // A stripe of y on one thread, feature by feature; for layers of many stripes.
  void ForwardStripe(const RowLayer& layer, const Stripe& stripe, Matrix y);
  // The same by all threads; for layers of few stripes.
  void ForwardTogether(const RowLayer& layer, const Stripe& stripe, Matrix y);
  // The field's P, [unique + 1, stripe.width]; the last row is zeros, for empty bags.
  void Multiply(const RowLayer& layer, const Stripe& stripe, size_t field, float* products) const;
  struct Part;  // Of the sums: some examples, some features.
  void BeginSums(const RowLayer& layer, const Stripe& stripe, const Part& part) const;
  void AddFields(const Stripe& stripe, const Part& part) const;
  void FinishSums(const RowLayer& layer, const Stripe& stripe, const Part& part, Matrix y) const;

  // dy behind the activation, cut into tiles: [tiles][n, kGatherTile].
  void TakeGradient(const RowLayer& layer, ConstMatrix y, Matrix dy, bool mask_dy,
                    float* tiles) const;
  // The first features of groups that go through dy together, and the number of features behind
  // them. How they are grouped changes no result.
  std::vector<size_t> BackwardGroups(uint32_t dim) const;
  void BackwardPlain(const RowLayer& layer, const Stripe& tile, size_t num_examples,
                     const float* gradient, const RowLayerGradients& out) const;
  void BackwardField(const RowLayer& layer, const Stripe& tile, size_t field, const float* gradient,
                     const RowLayerGradients& out);
  // Where one field's gradients of a tile go: rows [unique, dim], weights [dim, tile].
  struct FieldGradients {
    float* rows = nullptr;
    Write write_rows = Write::kOver;
    Matrix weights;
  };
  float* GradientRowsOf(const RowLayer& layer, const Stripe& tile, size_t field,
                        const RowLayerGradients& out);
  // Some rows at a time: their sums are used while they are in the first-level cache.
  void BackwardInChunks(const RowLayer& layer, const Stripe& tile, size_t field,
                        const float* gradient, const FieldGradients& to) const;
  void AddScatteredGradients(uint32_t dim, const RowLayerGradients& out);

  Executor& executor_;
  const GatherLoops loops_;
  const SmallGemmLoop multiply_;
  const VectorWidth width_ = WidestVectors();
  FeatureRows index_;
  // [fields]; rows and gradients of features whose rows are not in place, or not in one piece.
  std::vector<std::vector<float>> scattered_rows_, scattered_gradients_;
  TileScratch scratch_;
};

}  // namespace hdps
