// Bags on the CPU: one loop for every dim, unrolled for the usual ones.
#include "kernels/embedding_bag.h"

#include <algorithm>
#include <bit>

namespace hdps {
namespace {

// kDim 0 takes the dim at run time.
template <uint32_t kDim>
void PoolBagsOf(const Bags& bags, Pooling pooling, const float* rows, Write write, Matrix pooled) {
  const size_t dim = kDim != 0 ? kDim : pooled.cols;
  const uint32_t* index = bags.row_index.data();
  const float* weights = bags.weights.empty() ? nullptr : bags.weights.data();
  for (size_t b = 0; b + 1 < bags.offsets.size(); ++b) {
    float* out = pooled.Row(b);
    const uint32_t begin = bags.offsets[b], end = bags.offsets[b + 1];
    if (end == begin + 1 && weights == nullptr) {
      const float* row = rows + index[begin] * dim;
      if (write == Write::kOver) {
        for (size_t d = 0; d < dim; ++d) out[d] = row[d];
      } else {
        for (size_t d = 0; d < dim; ++d) out[d] += row[d];
      }
      continue;
    }
    const float scale =
        pooling == Pooling::kMean && end > begin ? 1.0f / static_cast<float>(end - begin) : 1.0f;
    if (write == Write::kOver) std::fill_n(out, dim, 0.0f);
    for (uint32_t k = begin; k < end; ++k) {
      const float* row = rows + index[k] * dim;
      const float factor = weights == nullptr ? scale : weights[k] * scale;
      for (size_t d = 0; d < dim; ++d) out[d] += factor * row[d];
    }
  }
}

template <uint32_t kDim>
void PoolBagsBackwardOf(const Bags& bags, Pooling pooling, RowSlice slice, ConstMatrix gradient,
                        float* row_gradients) {
  const size_t dim = kDim != 0 ? kDim : gradient.cols;
  const uint32_t* index = bags.row_index.data();
  const float* weights = bags.weights.empty() ? nullptr : bags.weights.data();
  // Every key asks for its slice: by a mask where there is one, division takes longer than adding.
  const uint32_t mask = std::has_single_bit(slice.count) ? slice.count - 1 : 0;
  const auto slice_of = [&](uint32_t row) {
    const uint32_t block = row / kSliceRows;
    return mask != 0 ? block & mask : block % slice.count;
  };
  for (size_t b = 0; b + 1 < bags.offsets.size(); ++b) {
    const float* grad = gradient.Row(b);
    const uint32_t begin = bags.offsets[b], end = bags.offsets[b + 1];
    const float scale =
        pooling == Pooling::kMean && end > begin ? 1.0f / static_cast<float>(end - begin) : 1.0f;
    for (uint32_t k = begin; k < end; ++k) {
      if (slice_of(index[k]) != slice.index) continue;
      float* out = row_gradients + index[k] * dim;
      const float factor = weights == nullptr ? scale : weights[k] * scale;
      for (size_t d = 0; d < dim; ++d) out[d] += factor * grad[d];
    }
  }
}

}  // namespace

void PoolBags(const Bags& bags, Pooling pooling, const float* rows, Write write, Matrix pooled) {
  switch (pooled.cols) {
    case 1:
      return PoolBagsOf<1>(bags, pooling, rows, write, pooled);
    case 8:
      return PoolBagsOf<8>(bags, pooling, rows, write, pooled);
    case 16:
      return PoolBagsOf<16>(bags, pooling, rows, write, pooled);
    case 32:
      return PoolBagsOf<32>(bags, pooling, rows, write, pooled);
    default:
      return PoolBagsOf<0>(bags, pooling, rows, write, pooled);
  }
}

void PoolBagsBackward(const Bags& bags, Pooling pooling, RowSlice slice, ConstMatrix gradient,
                      float* row_gradients) {
  switch (gradient.cols) {
    case 1:
      return PoolBagsBackwardOf<1>(bags, pooling, slice, gradient, row_gradients);
    case 8:
      return PoolBagsBackwardOf<8>(bags, pooling, slice, gradient, row_gradients);
    case 16:
      return PoolBagsBackwardOf<16>(bags, pooling, slice, gradient, row_gradients);
    case 32:
      return PoolBagsBackwardOf<32>(bags, pooling, slice, gradient, row_gradients);
    default:
      return PoolBagsBackwardOf<0>(bags, pooling, slice, gradient, row_gradients);
  }
}

}  // namespace hdps
