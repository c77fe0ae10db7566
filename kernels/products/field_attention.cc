// Cuts the examples into bands, one piece of work each, and a band into blocks. A block's products
// are small ones; between them are loops over vectors of queries.
#include "kernels/products/field_attention.h"

#include <algorithm>

#include "kernels/host/exponential.h"
#include "kernels/products/padded_rows.h"

namespace hdps {
namespace {

constexpr size_t kLanes = kSmallProductCols;  // Floats that a loop takes at a time.

// Memory of one thread for a block, which grows to the largest.
struct Scratch {
  std::vector<float> x;          // [block * fields, dim], where the input has gaps.
  std::vector<float> projected;  // [block * fields, projected]
  std::vector<float> gradients;  // Those of what is projected.
  std::vector<float> weights;    // [fields of keys, fields of queries] of a head.
  std::vector<float> slopes;     // The same: gradients of weights, then of scores.
  std::vector<float> across;     // [head_dim, fields]
  std::vector<float> b, out;     // [fields, head]
  std::vector<float> dx;         // [block * fields, dim]
};
Scratch& ScratchOfThread() {
  thread_local Scratch scratch;
  return scratch;
}

// Turns scores [fields, padded], whose columns are queries, into the softmax of each column.
HDPS_INLINE void SoftmaxColumns(float* scores, size_t fields, size_t padded) {
  for (size_t first = 0; first < padded; first += kLanes) {
    float largest[kLanes], total[kLanes] = {};
    for (size_t l = 0; l < kLanes; ++l) largest[l] = scores[first + l];
    for (size_t g = 1; g < fields; ++g) {
      const float* const of = scores + g * padded + first;
      for (size_t l = 0; l < kLanes; ++l) largest[l] = largest[l] < of[l] ? of[l] : largest[l];
    }
    for (size_t g = 0; g < fields; ++g) {
      float* const of = scores + g * padded + first;
      for (size_t l = 0; l < kLanes; ++l) of[l] = ExpOf(of[l] - largest[l]);
      for (size_t l = 0; l < kLanes; ++l) total[l] += of[l];
    }
    for (size_t l = 0; l < kLanes; ++l) total[l] = 1.0f / total[l];
    for (size_t g = 0; g < fields; ++g) {
      float* const of = scores + g * padded + first;
      for (size_t l = 0; l < kLanes; ++l) of[l] *= total[l];
    }
  }
}

// Turns slopes [fields, padded], the gradient of the weights, into that of the scores.
HDPS_INLINE void SoftmaxColumnsBackward(const float* weights, size_t fields, size_t padded,
                                        float* slopes) {
  for (size_t first = 0; first < padded; first += kLanes) {
    float mean[kLanes] = {};
    for (size_t g = 0; g < fields; ++g) {
      const float* const weight = weights + g * padded + first;
      const float* const of = slopes + g * padded + first;
      for (size_t l = 0; l < kLanes; ++l) mean[l] += weight[l] * of[l];
    }
    for (size_t g = 0; g < fields; ++g) {
      const float* const weight = weights + g * padded + first;
      float* const of = slopes + g * padded + first;
      for (size_t l = 0; l < kLanes; ++l) of[l] = weight[l] * (of[l] - mean[l]);
    }
  }
}

}  // namespace

// The distances in scratch memory, and how the examples are cut.
struct FieldAttention::Sizes {
  Sizes(const AttentionShape& shape, size_t n)
      : projected(PaddedColumns(kAttentionProjections * shape.units())),
        fields(PaddedColumns(shape.fields)),
        head(PaddedColumns(shape.head_dim)),
        dim(PaddedColumns(shape.dim)),
        bands(n, 2 * shape.fields * projected) {}

  size_t projected, fields, head, dim;
  ExampleBands bands;
};

// Computes blocks of examples on one thread, in scratch memory of its own.
class FieldAttention::Block {
 public:
  Block(const FieldAttention& layer, const AttentionShape& shape, const Sizes& sizes)
      : layer_(layer), shape_(shape), sizes_(sizes), scratch_(ScratchOfThread()) {
    const size_t rows = sizes.bands.block * shape.fields;
    scratch_.x.resize(rows * shape.dim);
    scratch_.projected.resize(rows * sizes.projected);
    scratch_.weights.resize(shape.fields * sizes.fields);
    scratch_.slopes.resize(shape.fields * sizes.fields);
    scratch_.across.assign(shape.head_dim * sizes.fields, 0.0f);
    scratch_.b.resize(shape.fields * sizes.head);
    scratch_.out.resize(shape.fields * sizes.head);
  }

  // Computes the examples of x.
  void Forward(ConstMatrix x, Matrix y) {
    Project(x);
    for (size_t i = 0; i < x.rows; ++i) {
      const float* const first = scratch_.projected.data() + i * shape_.fields * sizes_.projected;
      for (size_t head = 0; head < shape_.heads; ++head) {
        const size_t col = head * shape_.head_dim;
        Weigh(first, col);
        AddToResidual(first, col, y.Row(i));
      }
    }
  }

  // Adds to `gradients` [dim, projected] those of the packed weights.
  void Backward(const AttentionBackward& pass, float* gradients) {
    Project(pass.x);
    const size_t rows = pass.x.rows * shape_.fields;
    scratch_.gradients.resize(scratch_.projected.size());
    if (sizes_.projected != kAttentionProjections * shape_.units()) {
      std::fill(scratch_.gradients.begin(), scratch_.gradients.end(), 0.0f);  // Columns that pad.
    }
    for (size_t i = 0; i < pass.x.rows; ++i) {
      const size_t at = i * shape_.fields * sizes_.projected;
      MaskRelu(pass.y.Row(i), pass.dy.Row(i), scratch_.gradients.data() + at);
      for (size_t head = 0; head < shape_.heads; ++head) {
        const size_t col = head * shape_.head_dim;
        Weigh(scratch_.projected.data() + at, col);
        BackwardOfHead(scratch_.projected.data() + at, col, scratch_.gradients.data() + at);
      }
    }
    layer_.multiply_(ProductOfTransposed(
        {rows_, rows, shape_.dim, shape_.dim}, Gradients(rows),
        {gradients, shape_.dim, sizes_.projected, sizes_.projected}, Write::kAdd));
    if (pass.dx.data != nullptr) ToInput(pass, rows);
  }

 private:
  enum Projection : size_t { kQuery, kKey, kValue, kResidual };

  // Returns where the columns of a projection's head begin.
  template <typename Float>
  Float* Of(Float* first, Projection projection, size_t col) const {
    return first + projection * shape_.units() + col;
  }

  // Returns the gradients of the block's projections.
  ConstMatrix Gradients(size_t rows) const {
    return {scratch_.gradients.data(), rows, sizes_.projected, sizes_.projected};
  }

  // Sets rows_ to the vectors of the block without gaps, and projected_ to their projections.
  void Project(ConstMatrix x) {
    rows_ = x.data;
    if (x.stride != x.cols) {
      CopyRows(x.data, x.stride, x.rows, x.cols, scratch_.x.data(), x.cols);
      rows_ = scratch_.x.data();
    }
    const size_t rows = x.rows * shape_.fields, cols = sizes_.projected;
    layer_.multiply_(ProductOf({rows_, rows, shape_.dim, shape_.dim},
                               {layer_.packed_.data(), shape_.dim, cols, cols},
                               {scratch_.projected.data(), rows, cols, cols}));
  }

  // Sets across_ [head_dim, fields] to the columns of a head transposed.
  void TurnAcross(const float* from) {
    TransposeRows(from, sizes_.projected, shape_.fields, shape_.head_dim, scratch_.across.data(),
                  sizes_.fields);
  }

  // to[g, f] = <row g of a, column f of across_>, for the columns of a head.
  void DotAcross(const float* a, float* to) const {
    layer_.multiply_(
        ProductOf({a, shape_.fields, shape_.head_dim, sizes_.projected},
                  {scratch_.across.data(), shape_.head_dim, sizes_.fields, sizes_.fields},
                  {to, shape_.fields, sizes_.fields, sizes_.fields}));
  }

  // Sets weights_ [key, query] of a head.
  void Weigh(const float* first, size_t col) {
    TurnAcross(Of(first, kQuery, col));
    DotAcross(Of(first, kKey, col), scratch_.weights.data());
    WithVectors(
        layer_.width_, [&]() __attribute__((always_inline)) {
          SoftmaxColumns(scratch_.weights.data(), shape_.fields, sizes_.fields);
        });
  }

  // Names the side of the weights of a head, [keys, queries], that gets a sum over the other.
  enum class SumFor { kQueries, kKeys };

  // Sets sums [fields, head] to sums of rows of b, the columns of a head among the projections,
  // with the factors [keys, queries].
  void SumRows(SumFor side, const std::vector<float>& factors, const float* b, Matrix sums) {
    const size_t fields = shape_.fields, head = sizes_.head;
    ConstMatrix rows{b, fields, head, sizes_.projected};
    if (head != shape_.head_dim) {
      CopyRows(b, rows.stride, fields, shape_.head_dim, scratch_.b.data(), head);
      rows = {scratch_.b.data(), fields, head, head};
    }
    const ConstMatrix by_key{factors.data(), fields, fields, sizes_.fields};
    layer_.multiply_(side == SumFor::kKeys ? ProductOf(by_key, rows, sums)
                                           : ProductOfTransposed(by_key, rows, sums));
  }
  Matrix Sums() { return {scratch_.out.data(), shape_.fields, sizes_.head, sizes_.head}; }

  // y = relu(sums of values + residual).
  void AddToResidual(const float* first, size_t col, float* y) {
    const Matrix sums = Sums();
    SumRows(SumFor::kQueries, scratch_.weights, Of(first, kValue, col), sums);
    WithVectors(
        layer_.width_, [&]() __attribute__((always_inline)) {
          for (size_t f = 0; f < shape_.fields; ++f) {
            const float* const sum = sums.Row(f);
            const float* const residual = Of(first, kResidual, col) + f * sizes_.projected;
            float* const to = y + f * shape_.units() + col;
#pragma GCC ivdep
            for (size_t d = 0; d < shape_.head_dim; ++d) {
              const float value = sum[d] + residual[d];
              to[d] = value > 0.0f ? value : 0.0f;
            }
          }
        });
  }

  // Sets the gradients of the residuals, which are those of the sums.
  void MaskRelu(const float* y, const float* dy, float* gradients) const {
    WithVectors(
        layer_.width_, [&]() __attribute__((always_inline)) {
          for (size_t f = 0; f < shape_.fields; ++f) {
            const float* const value = y + f * shape_.units();
            const float* const from = dy + f * shape_.units();
            float* const to = Of(gradients, kResidual, 0) + f * sizes_.projected;
#pragma GCC ivdep
            for (size_t j = 0; j < shape_.units(); ++j) to[j] = value[j] > 0.0f ? from[j] : 0.0f;
          }
        });
  }

  void BackwardOfHead(const float* first, size_t col, float* gradients) {
    const auto give = [&](Projection projection, SumFor side, const std::vector<float>& factors,
                          const float* b) {
      float* const to = Of(gradients, projection, col);
      if (sizes_.head == shape_.head_dim) {
        return SumRows(side, factors, b, {to, shape_.fields, sizes_.head, sizes_.projected});
      }
      SumRows(side, factors, b, Sums());
      CopyRows(scratch_.out.data(), sizes_.head, shape_.fields, shape_.head_dim, to,
               sizes_.projected);
    };
    const float* const dsum = Of(gradients, kResidual, col);
    give(kValue, SumFor::kKeys, scratch_.weights, dsum);
    TurnAcross(dsum);
    DotAcross(Of(first, kValue, col), scratch_.slopes.data());
    WithVectors(
        layer_.width_, [&]() __attribute__((always_inline)) {
          SoftmaxColumnsBackward(scratch_.weights.data(), shape_.fields, sizes_.fields,
                                 scratch_.slopes.data());
        });
    give(kQuery, SumFor::kQueries, scratch_.slopes, Of(first, kKey, col));
    give(kKey, SumFor::kKeys, scratch_.slopes, Of(first, kQuery, col));
  }

  // dx (+)= the gradients of the projections times the transposed weights.
  void ToInput(const AttentionBackward& pass, size_t rows) {
    scratch_.dx.resize(sizes_.bands.block * shape_.fields * sizes_.dim);
    const Matrix dx{scratch_.dx.data(), rows, sizes_.dim, sizes_.dim};
    layer_.multiply_(
        ProductOf(Gradients(rows),
                  {layer_.transposed_.data(), sizes_.projected, sizes_.dim, sizes_.dim}, dx));
    WithVectors(
        layer_.width_, [&]() __attribute__((always_inline)) {
          for (size_t r = 0; r < rows; ++r) {
            const float* const from = dx.Row(r);
            float* const to = pass.dx.Row(r / shape_.fields) + r % shape_.fields * shape_.dim;
            if (pass.write_dx == Write::kOver) {
              std::copy_n(from, shape_.dim, to);
            } else {
#pragma GCC ivdep
              for (size_t d = 0; d < shape_.dim; ++d) to[d] += from[d];
            }
          }
        });
  }

  const FieldAttention& layer_;
  const AttentionShape& shape_;
  const Sizes& sizes_;
  Scratch& scratch_;
  const float* rows_ = nullptr;  // [block * fields, dim]
};

void FieldAttention::Pack(const AttentionShape& shape, const Sizes& sizes,
                          const AttentionTensors<const float>& weights) {
  packed_.assign(shape.dim * sizes.projected, 0.0f);
  for (size_t i = 0; i < kAttentionProjections; ++i) {
    CopyRows(weights[i], shape.units(), shape.dim, shape.units(),
             packed_.data() + i * shape.units(), sizes.projected);
  }
}

void FieldAttention::Forward(const AttentionShape& shape,
                             const AttentionTensors<const float>& weights, ConstMatrix x,
                             Matrix y) {
  const Sizes sizes(shape, x.rows);
  Pack(shape, sizes, weights);
  executor_.ParallelFor(sizes.bands.count, [&](size_t band) {
    Block block(*this, shape, sizes);
    sizes.bands.ForBlocks(band, [&](size_t first, size_t count) {
      block.Forward(x.Rows(first, count), y.Rows(first, count));
    });
  });
}

void FieldAttention::Backward(const AttentionShape& shape,
                              const AttentionTensors<const float>& weights,
                              const AttentionBackward& pass) {
  const Sizes sizes(shape, pass.x.rows);
  Pack(shape, sizes, weights);
  transposed_.assign(sizes.projected * sizes.dim, 0.0f);
  TransposeRows(packed_.data(), sizes.projected, shape.dim, sizes.projected, transposed_.data(),
                sizes.dim);
  const size_t floats = packed_.size();
  band_gradients_.assign(sizes.bands.count * floats, 0.0f);
  executor_.ParallelFor(sizes.bands.count, [&](size_t band) {
    Block block(*this, shape, sizes);
    sizes.bands.ForBlocks(band, [&](size_t first, size_t count) {
      AttentionBackward part = pass;
      part.x = pass.x.Rows(first, count);
      part.y = pass.y.Rows(first, count);
      part.dy = pass.dy.Rows(first, count);
      if (pass.dx.data != nullptr) part.dx = pass.dx.Rows(first, count);
      block.Backward(part, band_gradients_.data() + band * floats);
    });
  });
  AddBands(band_gradients_.data(), sizes.bands.count, floats);
  for (size_t i = 0; i < kAttentionProjections; ++i) {
    CopyRows(band_gradients_.data() + i * shape.units(), sizes.projected, shape.dim, shape.units(),
             pass.weight_gradients[i], shape.units());
  }
}

}  // namespace hdps
