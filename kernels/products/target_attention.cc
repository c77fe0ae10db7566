// Multiplies all vectors of a block at once; loops over the units of the hidden layer do the rest.
#include "kernels/products/target_attention.h"

#include <algorithm>

#include "common/job/activation.h"
#include "kernels/host/exponential.h"
#include "kernels/products/padded_rows.h"
#include "kernels/tasks/row_task.h"

namespace hdps {
namespace {

constexpr size_t kLanes = kSmallProductCols;  // Floats that a loop takes at a time.

// Memory of one thread for a block, which grows to the largest. Vectors are those that the examples
// of the block have, one after the other.
struct Scratch {
  std::vector<size_t> first;     // [examples + 1], first vectors.
  std::vector<float> z;          // [vectors, 2 * dim]: [k, k * q]
  std::vector<float> product;    // [vectors, units]: z times its weights.
  std::vector<float> hidden;     // The same behind the activation; then its gradient.
  std::vector<float> of_target;  // [examples, units]: q times its weights; then its gradient.
  std::vector<float> weights;    // [vectors]: scores, or their softmax.
  std::vector<float> slopes;     // Their gradients.
  std::vector<float> dz;         // [vectors, 2 * dim]
  std::vector<float> dtarget;    // [examples, dim]
};
Scratch& ScratchOfThread() {
  thread_local Scratch scratch;
  return scratch;
}

// Returns the sum of a * b over a number of units that is a multiple of kLanes, in one order.
HDPS_INLINE float DotOfUnits(const float* a, const float* b, size_t units) {
  float lanes[kLanes] = {};
  for (size_t j = 0; j < units; j += kLanes) {
    for (size_t l = 0; l < kLanes; ++l) lanes[l] += a[j + l] * b[j + l];
  }
  for (size_t l = 0; l < 8; ++l) lanes[l] += lanes[l + 8];
  for (size_t l = 0; l < 4; ++l) lanes[l] += lanes[l + 4];
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

// The activation of the hidden layer; that of the paper's text in vectors.
HDPS_INLINE void ActivateUnits(Activation kind, const float* z, size_t units, float* h) {
  if (kind == Activation::kSigmoid) {
#pragma GCC ivdep
    for (size_t j = 0; j < units; ++j) h[j] = 1.0f / (1.0f + ExpOf(-z[j]));
  } else {
    for (size_t j = 0; j < units; ++j) h[j] = ActivationOf(kind, z[j]);
  }
}

// Turns h into the gradient of z, where the gradient of h is slope * score.
HDPS_INLINE void ActivateUnitsBackward(Activation kind, const float* z, const float* score,
                                       float slope, size_t units, float* h) {
  if (kind == Activation::kSigmoid) {
#pragma GCC ivdep
    for (size_t j = 0; j < units; ++j) h[j] = slope * score[j] * (h[j] * (1.0f - h[j]));
  } else {
    for (size_t j = 0; j < units; ++j) h[j] = slope * score[j] * ActivationSlope(kind, z[j]);
  }
}

// Turns scores into their softmax.
HDPS_INLINE void Softmax(float* scores, size_t count) {
  if (count == 0) return;
  float total = 0.0f;
  const float largest = *std::max_element(scores, scores + count);
#pragma GCC ivdep
  for (size_t p = 0; p < count; ++p) scores[p] = ExpOf(scores[p] - largest);
  for (size_t p = 0; p < count; ++p) total += scores[p];
  for (size_t p = 0; p < count; ++p) scores[p] /= total;
}

}  // namespace

// Tells where the parts of packed_ begin, with `units` padded columns each, and how the examples
// are cut.
struct TargetAttention::Sizes {
  Sizes(const TargetAttentionShape& shape, size_t n, size_t length)
      : units(PaddedColumns(shape.units)),
        vectors(2 * shape.dim),
        vector_columns(PaddedColumns(vectors)),
        dim_columns(PaddedColumns(shape.dim)),
        of_target(vectors * units),
        bias(of_target + shape.dim * units),
        score(bias + units),
        score_bias(score + units),
        floats(score_bias + 1),
        bands(n, length * (2 * vectors + 2 * units)) {}

  size_t units;                        // Columns of the hidden layer.
  size_t vectors;                      // Columns of z, rows of the first part.
  size_t vector_columns, dim_columns;  // Columns of z's and the target's gradients.
  size_t of_target, bias, score, score_bias, floats;
  ExampleBands bands;
};

// Computes blocks of examples on one thread.
class TargetAttention::Block {
 public:
  Block(const TargetAttention& layer, const TargetAttentionShape& shape, const Sizes& sizes)
      : layer_(layer), shape_(shape), sizes_(sizes), scratch_(ScratchOfThread()) {}

  void Forward(const TargetAttentionInput& input, Matrix y) {
    Score(input);
    WithVectors(
        layer_.width_, [&]() __attribute__((always_inline)) {
          for (size_t i = 0; i < y.rows; ++i) {
            float* const to = y.Row(i);
            std::fill_n(to, shape_.dim, 0.0f);
            for (size_t v = scratch_.first[i]; v < scratch_.first[i + 1]; ++v) {
              const float weight = scratch_.weights[v];
              const float* const key = Z(v);
#pragma GCC ivdep
              for (size_t d = 0; d < shape_.dim; ++d) to[d] += weight * key[d];
            }
          }
        });
  }

  // Adds to `gradients` those of packed_.
  void Backward(const TargetAttentionInput& input, const TargetAttentionBackward& pass,
                float* gradients) {
    Score(input);
    const size_t n = pass.dy.rows, units = sizes_.units, vectors = scratch_.first[n];
    WithVectors(
        layer_.width_, [&]() __attribute__((always_inline)) {
          for (size_t i = 0; i < n; ++i) BackwardOfScores(i, pass.dy.Row(i), gradients);
        });
    const ConstMatrix dhidden = View(scratch_.hidden, vectors, units);
    const ConstMatrix dtarget = View(scratch_.of_target, n, units);
    layer_.multiply_(ProductOfTransposed(View(scratch_.z, vectors, sizes_.vectors), dhidden,
                                         {gradients, sizes_.vectors, units, units}, Write::kAdd));
    layer_.multiply_(ProductOfTransposed(input.target, dtarget,
                                         {gradients + sizes_.of_target, shape_.dim, units, units},
                                         Write::kAdd));
    const size_t z_columns = sizes_.vector_columns, q_columns = sizes_.dim_columns;
    const float* const transposed = layer_.transposed_.data();
    layer_.multiply_(ProductOf(dhidden, {transposed, units, z_columns, z_columns},
                               View(scratch_.dz, vectors, z_columns)));
    layer_.multiply_(ProductOf(dtarget,
                               {transposed + units * z_columns, units, q_columns, q_columns},
                               View(scratch_.dtarget, n, q_columns)));
    WithVectors(
        layer_.width_, [&]() __attribute__((always_inline)) {
          for (size_t i = 0; i < n; ++i) ToInput(i, input, pass);
        });
  }

 private:
  // Returns a matrix without gaps in scratch memory, which grows if it has to.
  static Matrix View(std::vector<float>& memory, size_t rows, size_t cols) {
    memory.resize(std::max(memory.size(), rows * cols));
    return {memory.data(), rows, cols, cols};
  }
  HDPS_INLINE float* Z(size_t vector) { return scratch_.z.data() + vector * sizes_.vectors; }

  // Fills z, product, hidden and weights.
  void Score(const TargetAttentionInput& input) {
    const size_t n = input.target.rows, units = sizes_.units;
    scratch_.first.assign(1, 0);
    for (size_t i = 0; i < n; ++i) {
      scratch_.first.push_back(scratch_.first[i] + static_cast<size_t>(input.counts[i]));
    }
    const size_t vectors = scratch_.first[n];
    const Matrix z = View(scratch_.z, vectors, sizes_.vectors);
    const Matrix product = View(scratch_.product, vectors, units);
    const Matrix of_target = View(scratch_.of_target, n, units);
    View(scratch_.hidden, vectors, units);
    View(scratch_.weights, vectors, 1);
    View(scratch_.slopes, vectors, 1);
    WithVectors(
        layer_.width_, [&]() __attribute__((always_inline)) {
          for (size_t i = 0; i < n; ++i) MakeFeatures(i, input.keys.Row(i), input.target.Row(i));
        });
    const float* const packed = layer_.packed_.data();
    layer_.multiply_(ProductOf(z, {packed, sizes_.vectors, units, units}, product));
    layer_.multiply_(
        ProductOf(input.target, {packed + sizes_.of_target, shape_.dim, units, units}, of_target));
    WithVectors(
        layer_.width_, [&]() __attribute__((always_inline)) {
          for (size_t i = 0; i < n; ++i) ScoreVectors(i);
        });
  }

  HDPS_INLINE void MakeFeatures(size_t i, const float* keys, const float* target) {
    for (size_t v = scratch_.first[i]; v < scratch_.first[i + 1]; ++v, keys += shape_.dim) {
      float* const to = Z(v);
#pragma GCC ivdep
      for (size_t d = 0; d < shape_.dim; ++d) {
        to[d] = keys[d];
        to[shape_.dim + d] = keys[d] * target[d];
      }
    }
  }

  HDPS_INLINE void ScoreVectors(size_t i) {
    const size_t units = sizes_.units;
    const float* const packed = layer_.packed_.data();
    float* const shift = scratch_.of_target.data() + i * units;
    const float* const bias = packed + sizes_.bias;
#pragma GCC ivdep
    for (size_t j = 0; j < units; ++j) shift[j] += bias[j];
    const size_t first = scratch_.first[i], end = scratch_.first[i + 1];
    for (size_t v = first; v < end; ++v) {
      float* const z = scratch_.product.data() + v * units;
      float* const h = scratch_.hidden.data() + v * units;
#pragma GCC ivdep
      for (size_t j = 0; j < units; ++j) z[j] += shift[j];
      ActivateUnits(shape_.activation, z, units, h);
      scratch_.weights[v] = DotOfUnits(h, packed + sizes_.score, units) + packed[sizes_.score_bias];
    }
    if (shape_.softmax) Softmax(scratch_.weights.data() + first, end - first);
  }

  // Sets the slopes of an example, turns `hidden` and `of_target` into their gradients, and adds
  // those of scores and biases.
  HDPS_INLINE void BackwardOfScores(size_t i, const float* dy, float* gradients) {
    const size_t units = sizes_.units, first = scratch_.first[i], end = scratch_.first[i + 1];
    const float* const score = layer_.packed_.data() + sizes_.score;
    float* const dtarget = scratch_.of_target.data() + i * units;
    std::fill_n(dtarget, units, 0.0f);
    float* const slopes = scratch_.slopes.data();
    float mean = 0.0f;
    for (size_t v = first; v < end; ++v) {
      slopes[v] = DotOf(dy, Z(v), shape_.dim);
      mean += slopes[v] * scratch_.weights[v];
    }
    for (size_t v = first; v < end; ++v) {
      if (shape_.softmax) slopes[v] = scratch_.weights[v] * (slopes[v] - mean);
      float* const h = scratch_.hidden.data() + v * units;
      float* const dscore = gradients + sizes_.score;
#pragma GCC ivdep
      for (size_t j = 0; j < units; ++j) dscore[j] += slopes[v] * h[j];
      gradients[sizes_.score_bias] += slopes[v];
      ActivateUnitsBackward(shape_.activation, scratch_.product.data() + v * units, score,
                            slopes[v], units, h);
#pragma GCC ivdep
      for (size_t j = 0; j < units; ++j) dtarget[j] += h[j];
    }
    float* const dbias = gradients + sizes_.bias;
#pragma GCC ivdep
    for (size_t j = 0; j < units; ++j) dbias[j] += dtarget[j];
  }

  // Gives the keys and the target of an example their gradients.
  HDPS_INLINE void ToInput(size_t i, const TargetAttentionInput& input,
                           const TargetAttentionBackward& pass) {
    const size_t dim = shape_.dim, first = scratch_.first[i], end = scratch_.first[i + 1];
    const float* const target = input.target.Row(i);
    const float* const dy = pass.dy.Row(i);
    float* const dtarget = scratch_.dtarget.data() + i * sizes_.dim_columns;
    float* to = pass.dkeys.Row(i);
    for (size_t v = first; v < end; ++v, to += dim) {
      const float* const key = Z(v);
      const float* const dz = scratch_.dz.data() + v * sizes_.vector_columns;
      const float weight = scratch_.weights[v];
      const bool over = pass.write_dkeys == Write::kOver;
#pragma GCC ivdep
      for (size_t d = 0; d < dim; ++d) {
        const float gradient = dz[d] + dz[dim + d] * target[d] + weight * dy[d];
        to[d] = over ? gradient : to[d] + gradient;
      }
#pragma GCC ivdep
      for (size_t d = 0; d < dim; ++d) dtarget[d] += dz[dim + d] * key[d];
    }
    if (pass.write_dkeys == Write::kOver) {
      std::fill(to, pass.dkeys.Row(i) + pass.dkeys.cols, 0.0f);
    }
    if (pass.dtarget.data == nullptr) return;
    for (size_t d = 0; d < dim; ++d) {
      WriteTo(pass.dtarget.Row(i)[d], pass.write_dtarget, dtarget[d]);
    }
  }

  const TargetAttention& layer_;
  const TargetAttentionShape& shape_;
  const Sizes& sizes_;
  Scratch& scratch_;
};

void TargetAttention::Pack(const TargetAttentionShape& shape, const Sizes& sizes,
                           const TargetAttentionTensors<const float>& tensors) {
  const size_t part = shape.dim * shape.units;
  packed_.assign(sizes.floats, 0.0f);
  for (size_t d = 0; d < shape.dim; ++d) {
    for (size_t j = 0; j < shape.units; ++j) {
      const float* const of_key = tensors.weight + d * shape.units + j;
      const float of_difference = of_key[2 * part];
      packed_[d * sizes.units + j] = of_key[0] + of_difference;
      packed_[(shape.dim + d) * sizes.units + j] = of_key[3 * part];
      packed_[sizes.of_target + d * sizes.units + j] = of_key[part] - of_difference;
    }
  }
  std::copy_n(tensors.bias, shape.units, packed_.data() + sizes.bias);
  std::copy_n(tensors.score, shape.units, packed_.data() + sizes.score);
  if (tensors.score_bias != nullptr) packed_[sizes.score_bias] = *tensors.score_bias;
}

void TargetAttention::Unpack(const TargetAttentionShape& shape, const Sizes& sizes,
                             const TargetAttentionTensors<float>& tensors) const {
  const size_t part = shape.dim * shape.units;
  const float* const from = band_gradients_.data();
  for (size_t d = 0; d < shape.dim; ++d) {
    for (size_t j = 0; j < shape.units; ++j) {
      float* const of_key = tensors.weight + d * shape.units + j;
      of_key[0] = from[d * sizes.units + j];
      of_key[part] = from[sizes.of_target + d * sizes.units + j];
      of_key[2 * part] = of_key[0] - of_key[part];
      of_key[3 * part] = from[(shape.dim + d) * sizes.units + j];
    }
  }
  std::copy_n(from + sizes.bias, shape.units, tensors.bias);
  std::copy_n(from + sizes.score, shape.units, tensors.score);
  if (tensors.score_bias != nullptr) *tensors.score_bias = from[sizes.score_bias];
}

void TargetAttention::Forward(const TargetAttentionShape& shape,
                              const TargetAttentionTensors<const float>& tensors,
                              const TargetAttentionInput& input, Matrix y) {
  const Sizes sizes(shape, y.rows, input.keys.cols / shape.dim);
  Pack(shape, sizes, tensors);
  executor_.ParallelFor(sizes.bands.count, [&](size_t band) {
    Block block(*this, shape, sizes);
    sizes.bands.ForBlocks(band, [&](size_t first, size_t count) {
      block.Forward(
          {input.counts + first, input.keys.Rows(first, count), input.target.Rows(first, count)},
          y.Rows(first, count));
    });
  });
}

void TargetAttention::Backward(const TargetAttentionShape& shape,
                               const TargetAttentionTensors<const float>& tensors,
                               const TargetAttentionInput& input,
                               const TargetAttentionBackward& pass) {
  const Sizes sizes(shape, pass.dy.rows, input.keys.cols / shape.dim);
  Pack(shape, sizes, tensors);
  const size_t of_vectors = sizes.units * sizes.vector_columns;
  transposed_.assign(of_vectors + sizes.units * sizes.dim_columns, 0.0f);
  TransposeRows(packed_.data(), sizes.units, sizes.vectors, sizes.units, transposed_.data(),
                sizes.vector_columns);
  TransposeRows(packed_.data() + sizes.of_target, sizes.units, shape.dim, sizes.units,
                transposed_.data() + of_vectors, sizes.dim_columns);
  band_gradients_.assign(sizes.bands.count * sizes.floats, 0.0f);
  executor_.ParallelFor(sizes.bands.count, [&](size_t band) {
    Block block(*this, shape, sizes);
    sizes.bands.ForBlocks(band, [&](size_t first, size_t count) {
      TargetAttentionBackward part = pass;
      part.dy = pass.dy.Rows(first, count);
      part.dkeys = pass.dkeys.Rows(first, count);
      if (pass.dtarget.data != nullptr) part.dtarget = pass.dtarget.Rows(first, count);
      block.Backward(
          {input.counts + first, input.keys.Rows(first, count), input.target.Rows(first, count)},
          part, band_gradients_.data() + band * sizes.floats);
    });
  });
  AddBands(band_gradients_.data(), sizes.bands.count, sizes.floats);
  Unpack(shape, sizes, pass.tensors);
}

}  // namespace hdps
