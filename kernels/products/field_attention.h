// Self-attention among the vectors of an example, from their projections to the result, computed in
// blocks of examples that stay in the cache.
//
// Nothing is kept between the two passes but input and result: projections and weights of a block
// are computed again in the backward, which costs less than writing and reading them. Results agree
// with AttendFields (kernels/tasks/attention_tasks.h) and its projections up to the rounding of
// products.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "common/platform/executor.h"
#include "kernels/matrix.h"
#include "kernels/products/small_gemm.h"
#include "kernels/vector_width.h"

namespace hdps {

// A layer that makes vectors of heads * head_dim columns from F vectors of dim columns; see
// AttendFields. Its scores are not scaled.
struct AttentionShape {
  size_t fields = 0, dim = 0, heads = 0, head_dim = 0;
  size_t units() const { return heads * head_dim; }
};

// One array for each of query, key, value and residual.
inline constexpr size_t kAttentionProjections = 4;
template <typename Float>
using AttentionTensors = std::array<Float*, kAttentionProjections>;  // Each [dim, units].

struct AttentionBackward {
  ConstMatrix x;                                  // [n, F * dim]
  ConstMatrix y;                                  // [n, F * units], the result.
  ConstMatrix dy;                                 // Its gradient.
  AttentionTensors<float> weight_gradients = {};  // Replaced.
  Matrix dx;                                      // (+)=; not computed without data.
  Write write_dx = Write::kOver;
};

// Invariant: examples are cut into bands by their number alone, so that results do not depend on
// the threads; the bands' gradients of the weights are added in order.
class FieldAttention {
 public:
  explicit FieldAttention(Executor& executor)
      : executor_(executor), multiply_(SmallGemmOfThisMachine()) {}
  FieldAttention(const FieldAttention&) = delete;
  FieldAttention& operator=(const FieldAttention&) = delete;

  void Forward(const AttentionShape& shape, const AttentionTensors<const float>& weights,
               ConstMatrix x, Matrix y);
  void Backward(const AttentionShape& shape, const AttentionTensors<const float>& weights,
                const AttentionBackward& pass);

 private:
  class Block;
  struct Sizes;

  // Sets packed_ to the weights side by side, [dim, Sizes::projected].
  void Pack(const AttentionShape& shape, const Sizes& sizes,
            const AttentionTensors<const float>& weights);

  Executor& executor_;
  const SmallGemmLoop multiply_;
  const VectorWidth width_ = WidestVectors();
  std::vector<float> packed_, transposed_;  // The same transposed, [projected, columns of dx].
  std::vector<float> band_gradients_;       // [bands][dim, projected]
};

}  // namespace hdps
