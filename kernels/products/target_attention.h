// The attention of DIN: pools a sequence with weights that a small MLP gives each vector and a
// target (Zhou et al. 2018, eq. 3), computed in blocks of examples that stay in the cache.
//
// The hidden layer over [k, q, k - q, k * q] is applied in parts: k (W1 + W3) + (k * q) W4 for each
// vector that there is, q (W2 - W3) once an example. Nothing is kept between the two passes but
// inputs and result. Results agree with DinFeatures (kernels/tasks/attention_tasks.h) and the
// layers above it up to the rounding of products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/platform/executor.h"
#include "kernels/matrix.h"
#include "kernels/products/small_gemm.h"
#include "kernels/vector_width.h"

namespace hdps {

enum class Activation : uint8_t;  // common/job/activation.h

struct TargetAttentionShape {
  size_t dim = 0, units = 0;
  Activation activation = {};  // Of the hidden layer.
  bool softmax = false;        // Of the scores of a sequence; else they weigh as they are.
};

// The tensors of the layer, or their gradients.
template <typename Float>
struct TargetAttentionTensors {
  Float* weight = nullptr;      // [4 * dim, units]
  Float* bias = nullptr;        // [units]
  Float* score = nullptr;       // [units]
  Float* score_bias = nullptr;  // [1]; null under softmax.
};

// What the layer reads. Vectors of keys behind the first counts[i] are not read.
struct TargetAttentionInput {
  const float* counts = nullptr;  // [n], integers.
  ConstMatrix keys;               // [n, L * dim]
  ConstMatrix target;             // [n, dim]
};

struct TargetAttentionBackward {
  ConstMatrix dy;                         // [n, dim]
  TargetAttentionTensors<float> tensors;  // Replaced.
  Matrix dkeys;                           // (+)=; 0 behind the last vector.
  Write write_dkeys = Write::kOver;
  Matrix dtarget;  // (+)=; not computed without data.
  Write write_dtarget = Write::kOver;
};

// Invariant: as that of FieldAttention.
class TargetAttention {
 public:
  explicit TargetAttention(Executor& executor)
      : executor_(executor), multiply_(SmallGemmOfThisMachine()) {}
  TargetAttention(const TargetAttention&) = delete;
  TargetAttention& operator=(const TargetAttention&) = delete;

  void Forward(const TargetAttentionShape& shape,
               const TargetAttentionTensors<const float>& tensors,
               const TargetAttentionInput& input, Matrix y);
  void Backward(const TargetAttentionShape& shape,
                const TargetAttentionTensors<const float>& tensors,
                const TargetAttentionInput& input, const TargetAttentionBackward& pass);

 private:
  class Block;
  struct Sizes;

  // Sets packed_ to the tensors as blocks multiply them.
  void Pack(const TargetAttentionShape& shape, const Sizes& sizes,
            const TargetAttentionTensors<const float>& tensors);
  // Sets the gradients of the tensors from those of packed_, the first of band_gradients_.
  void Unpack(const TargetAttentionShape& shape, const Sizes& sizes,
              const TargetAttentionTensors<float>& tensors) const;

  Executor& executor_;
  const SmallGemmLoop multiply_;
  const VectorWidth width_ = WidestVectors();
  std::vector<float> packed_, transposed_;  // Laid out by Sizes.
  std::vector<float> band_gradients_;       // [bands] of packed_'s size.
};

}  // namespace hdps
