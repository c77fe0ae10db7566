// A dense layer on embeddings, computed once a distinct row instead of once an example.
//
// The layer y = act(sum over features f of pooled_f W_f + x W_x + b) multiplies each row by the
// same W_f as often as the row occurs. Here P_f = U_f W_f, with U_f the distinct rows of feature f,
// and y gathers rows of P_f. In the backward, G_f sums the rows of dy that used each row, and then
// dU_f = G_f W_f^T, dW_f = U_f^T G_f. Results agree with the plain layer up to the rounding of sums
// in another order.
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

// The inputs of UniqueRowGemmPays, which returns whether this is faster than the plain layer for a
// batch, by constants measured on x86-64. It depends only on the batch and the layer, so every run
// and every worker decides alike.
struct UniqueRowGemmShape {
  size_t keys = 0;         // Over all features of the batch.
  size_t unique_rows = 0;  // Rows of the table in the batch.
  uint32_t dim = 0, units = 0;
};
bool UniqueRowGemmPays(const UniqueRowGemmShape& shape);
// The same for scores, of which each must have the same bits in any batch, so that only the layer
// decides: by the batches of files, where a half of the keys is distinct, and not by single rows.
bool UniqueRowGemmPaysInScores(uint32_t dim);

// Columns of the layer's input that are not embeddings.
struct PlainColumns {
  ConstMatrix x;       // [n, columns]
  size_t first_input;  // Row of the layer's weights for the first column.
};

// The layer's inputs and parameters.
struct RowLayer {
  RowSpans<const float> rows;  // [num_rows, dim] of the table.
  uint32_t dim = 0;
  ConstMatrix weights;     // [inputs, units]
  size_t first_input = 0;  // Feature f uses rows of `weights` from first_input + f * dim on.
  std::span<const PlainColumns> plain;
  const float* bias = nullptr;  // [units]
  bool relu = false;
  bool rows_alike = false;  // In the forward: as GemmSpec::rows_alike.
};

// The results of the backward.
struct RowLayerGradients {
  Matrix weights;         // [inputs, units], replaced.
  float* bias = nullptr;  // [units], replaced.
  RowSpans<float> rows;   // [num_rows, dim]
  Write write_rows = Write::kOver;
  // Also turns dy into the gradient before the activation.
  bool mask_dy = false;
};

// Scratch memory for concurrent pieces of work, kept for reuse.
class TileScratch {
 public:
  struct Block {
    FloatMemory floats;
    size_t size = 0;
  };
  // Returns at least `floats` uninitialized floats; the block returned last is given out first.
  Block Take(size_t floats) HDPS_EXCLUDES(mutex_);
  void GiveBack(Block block) HDPS_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::vector<Block> free_ HDPS_GUARDED_BY(mutex_);
};

// Invariant: results depend on the arguments only, never on the number of threads nor on the pieces
// in which rows are stored. Sums run in order of feature, then of bag, inside tiles of kGatherTile
// units that are computed one after the other.
class UniqueRowGemm {
 public:
  explicit UniqueRowGemm(Executor& executor);

  // Loads the features' bags over one table of `num_rows` rows, for the passes until the next call.
  void Load(std::span<const Bags> features, Pooling pooling, uint32_t num_rows);
  void Forward(const RowLayer& layer, Matrix y);  // y [n, units]
  // `y` is the result of Forward, dy [n, units] its gradient.
  void Backward(const RowLayer& layer, ConstMatrix y, Matrix dy, const RowLayerGradients& out);

 private:
  // Up to this dim, products with a tile are small: their weights stay in the first-level cache.
  static constexpr uint32_t kSmallDimMax = 128;

  // Units [first, first + count) of the layer; matrices of a stripe have `width` columns, a
  // multiple of the tile.
  struct Stripe {
    size_t first, count, width;
  };
  static std::vector<Stripe> StripesOf(size_t units, size_t width);
  ConstMatrix RowsOf(const RowLayer& layer, size_t field) const;
  static ConstMatrix WeightsOf(const RowLayer& layer, size_t field, const Stripe& stripe);
  void CopyScatteredRows(const RowLayer& layer);

  // Computes a stripe of y on one thread, feature by feature; for layers of many stripes.
  void ForwardStripe(const RowLayer& layer, const Stripe& stripe, Matrix y);
  // The same by all threads; for layers of few stripes.
  void ForwardTogether(const RowLayer& layer, const Stripe& stripe, Matrix y);
  // Computes the field's P, [unique + 1, stripe.width]; the last row is zeros, for empty bags.
  void Multiply(const RowLayer& layer, const Stripe& stripe, size_t field, float* products) const;
  struct Part;  // Some examples and some features of the sums.
  void BeginSums(const RowLayer& layer, const Stripe& stripe, const Part& part) const;
  void AddFields(const Stripe& stripe, const Part& part) const;
  void FinishSums(const RowLayer& layer, const Stripe& stripe, const Part& part, Matrix y) const;

  // Copies dy after the activation into tiles: [tiles][n, kGatherTile].
  void TakeGradient(const RowLayer& layer, ConstMatrix y, Matrix dy, bool mask_dy,
                    float* tiles) const;
  // Returns the first feature of each group that passes over dy together, and the number of
  // features. Grouping changes no result.
  std::vector<size_t> BackwardGroups(uint32_t dim) const;
  void BackwardPlain(const RowLayer& layer, const Stripe& tile, size_t num_examples,
                     const float* gradient, const RowLayerGradients& out) const;
  void BackwardField(const RowLayer& layer, const Stripe& tile, size_t field, const float* gradient,
                     const RowLayerGradients& out);
  // The destination of one field's gradients of a tile: rows [unique, dim], weights [dim, tile].
  struct FieldGradients {
    float* rows = nullptr;
    Write write_rows = Write::kOver;
    Matrix weights;
  };
  float* GradientRowsOf(const RowLayer& layer, const Stripe& tile, size_t field,
                        const RowLayerGradients& out);
  // Handles some rows at a time, so that their sums are used while they are in the first-level
  // cache.
  void BackwardInChunks(const RowLayer& layer, const Stripe& tile, size_t field,
                        const float* gradient, const FieldGradients& to) const;
  void AddScatteredGradients(uint32_t dim, const RowLayerGradients& out);

  Executor& executor_;
  const GatherLoops loops_;
  const SmallGemmLoop multiply_;
  const VectorWidth width_ = WidestVectors();
  FeatureRows index_;
  // [fields]: rows and gradients of features whose rows are not in place, or not in one piece.
  std::vector<std::vector<float>> scattered_rows_, scattered_gradients_;
  TileScratch scratch_;
};

}  // namespace hdps
