// Bags on the CPU: one loop for every dim, unrolled for the usual ones.
#include "kernels/host/embedding_bag.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "common/job/spec/pooling.h"
#include "kernels/host/half_floats.h"
#include "kernels/vector_width.h"

namespace hdps {
namespace {

HDPS_INLINE float InFp32(float value) { return value; }
HDPS_INLINE float InFp32(uint16_t bf16) { return FromBf16(bf16); }

// kDim 0 takes the dim at run time. rows(i) returns the address of float i of the rows.
template <uint32_t kDim, typename Rows>
HDPS_INLINE void PoolBagsOf(const Bags& bags, Pooling pooling, const Rows& rows, Write write,
                            Matrix pooled) {
  const size_t dim = kDim != 0 ? kDim : pooled.cols;
  const uint32_t* index = bags.row_index.data();
  const float* weights = bags.weights.empty() ? nullptr : bags.weights.data();
  for (size_t b = 0; b + 1 < bags.offsets.size(); ++b) {
    float* out = pooled.Row(b);
    const uint32_t begin = bags.offsets[b], end = bags.offsets[b + 1];
    if (end == begin + 1 && weights == nullptr) {
      const float* row = rows(index[begin] * dim);
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
      const float* row = rows(index[k] * dim);
      const float factor = weights == nullptr ? scale : weights[k] * scale;
      for (size_t d = 0; d < dim; ++d) out[d] += factor * row[d];
    }
  }
}

// Computes the slice of a row. It is needed for every key, and dividing takes longer than adding
// the key, so a mask is used if possible.
class SliceOf {
 public:
  explicit SliceOf(RowSlice slice)
      : count_(slice.count), mask_(std::has_single_bit(slice.count) ? slice.count - 1 : 0) {}
  uint32_t operator()(uint32_t row) const {
    const uint32_t block = row / kSliceRows;
    return mask_ != 0 ? block & mask_ : block % count_;
  }

 private:
  uint32_t count_, mask_;
};

HDPS_INLINE bool OneKeyEach(const Bags& bags, size_t first, size_t end) {
  bool one = true;
  for (size_t b = first; b < end; ++b) one &= bags.offsets[b + 1] - bags.offsets[b] == 1;
  return one;
}

// Finds the keys of a slice without a branch, then adds them: a branch would be unpredictable, and
// a misprediction takes longer than adding.
template <uint32_t kDim, typename Gradient, typename Rows>
HDPS_INLINE void PoolBagsBackwardOf(const Bags& bags, Pooling pooling, RowSlice slice,
                                    const Gradient& gradient, const Rows& row_gradients) {
  constexpr size_t kBags = 256, kAhead = 4;
  const size_t dim = kDim != 0 ? kDim : gradient.cols;
  const uint32_t* index = bags.row_index.data();
  const float* weights = bags.weights.empty() ? nullptr : bags.weights.data();
  const SliceOf slice_of(slice);
  uint32_t of_slice[kBags + 1];  // Bags of one key.
  const auto add = [&](size_t b, uint32_t k, float scale) __attribute__((always_inline)) {
    const auto* __restrict grad = gradient.Row(b);
    float* __restrict out = row_gradients(index[k] * dim);
    const float factor = weights == nullptr ? scale : weights[k] * scale;
    for (size_t d = 0; d < dim; ++d) out[d] += factor * InFp32(grad[d]);
  };
  for (size_t first = 0; first < bags.num_bags(); first += kBags) {
    const size_t end = std::min(bags.num_bags(), first + kBags);
    const uint32_t first_key = bags.offsets[first];
    if (bags.offsets[end] - first_key == end - first && OneKeyEach(bags, first, end)) {
      size_t count = 0;
      for (size_t b = first; b < end; ++b) {
        of_slice[count] = static_cast<uint32_t>(b - first);
        count += slice_of(index[first_key + b - first]) == slice.index;
      }
      for (size_t i = 0; i < count; ++i) {
        const uint32_t ahead = of_slice[std::min(i + kAhead, count - 1)];
        __builtin_prefetch(row_gradients(index[first_key + ahead] * dim), 1);
        add(first + of_slice[i], first_key + of_slice[i], 1.0f);
      }
      continue;
    }
    for (size_t b = first; b < end; ++b) {
      const uint32_t begin = bags.offsets[b], behind = bags.offsets[b + 1];
      const float scale = pooling == Pooling::kMean && behind > begin
                              ? 1.0f / static_cast<float>(behind - begin)
                              : 1.0f;
      for (uint32_t k = begin; k < behind; ++k) {
        if (slice_of(index[k]) == slice.index) add(b, k, scale);
      }
    }
  }
}

// Calls body.operator()<kDim>() for the dim, in a copy for this machine's vectors.
template <typename Body>
void WithDim(size_t dim, const Body& body) {
  const auto copy = [&]<uint32_t kDim>() {
    WithVectors(
        WidestVectors(), [&]()
                             __attribute__((always_inline)) { body.template operator()<kDim>(); });
  };
  switch (dim) {
    case 1:
      return copy.template operator()<1>();
    case 8:
      return copy.template operator()<8>();
    case 16:
      return copy.template operator()<16>();
    case 32:
      return copy.template operator()<32>();
    default:
      return copy.template operator()<0>();
  }
}

template <typename Gradient>
void AddBags(const Bags& bags, Pooling pooling, RowSlice slice, const Gradient& gradient,
             const RowSpans<float>& row_gradients) {
  row_gradients.WithAddresses([&](const auto& at) {
    WithDim(
        gradient.cols, [&]<uint32_t kDim>() __attribute__((always_inline)) {
          PoolBagsBackwardOf<kDim>(bags, pooling, slice, gradient, at);
        });
  });
}

template <typename Gradient>
void AddBagsMax(const Bags& bags, const uint32_t* largest, RowSlice slice, const Gradient& gradient,
                const RowSpans<float>& row_gradients) {
  const size_t dim = gradient.cols;
  const SliceOf slice_of(slice);
  row_gradients.WithAddresses([&](const auto& at) {
    for (size_t b = 0; b < bags.num_bags(); ++b) {
      for (size_t d = 0; d < dim; ++d) {
        const uint32_t k = largest[b * dim + d];
        if (k == kNoKey || slice_of(bags.row_index[k]) != slice.index) continue;
        const float weight = bags.weights.empty() ? 1.0f : bags.weights[k];
        at(bags.row_index[k] * dim)[d] += weight * InFp32(gradient.Row(b)[d]);
      }
    }
  });
}

}  // namespace

void PoolBags(const Bags& bags, Pooling pooling, const RowSpans<const float>& rows, Write write,
              Matrix pooled) {
  rows.WithAddresses([&](const auto& at) {
    WithDim(
        pooled.cols, [&]<uint32_t kDim>() __attribute__((always_inline)) {
          PoolBagsOf<kDim>(bags, pooling, at, write, pooled);
        });
  });
}

void PoolBagsBackward(const Bags& bags, Pooling pooling, RowSlice slice, ConstMatrix gradient,
                      const RowSpans<float>& row_gradients) {
  AddBags(bags, pooling, slice, gradient, row_gradients);
}
void PoolBagsBackward(const Bags& bags, Pooling pooling, RowSlice slice, Bf16Matrix gradient,
                      const RowSpans<float>& row_gradients) {
  AddBags(bags, pooling, slice, gradient, row_gradients);
}

void PoolBagsMax(const Bags& bags, const RowSpans<const float>& rows, Write write, Matrix pooled,
                 uint32_t* largest) {
  const size_t dim = pooled.cols;
  std::vector<float> best(dim);
  rows.WithAddresses([&](const auto& at) {
    for (size_t b = 0; b < bags.num_bags(); ++b) {
      uint32_t* const which = largest + b * dim;
      std::fill_n(which, dim, kNoKey);
      std::ranges::fill(best, 0.0f);
      for (uint32_t k = bags.offsets[b]; k < bags.offsets[b + 1]; ++k) {
        const float* const row = at(bags.row_index[k] * dim);
        const float weight = bags.weights.empty() ? 1.0f : bags.weights[k];
        for (size_t d = 0; d < dim; ++d) {
          const float value = weight * row[d];
          if (which[d] != kNoKey && !(value > best[d])) continue;
          best[d] = value;
          which[d] = k;
        }
      }
      float* const out = pooled.Row(b);
      for (size_t d = 0; d < dim; ++d) out[d] = write == Write::kAdd ? out[d] + best[d] : best[d];
    }
  });
}

void PoolBagsMaxBackward(const Bags& bags, const uint32_t* largest, RowSlice slice,
                         ConstMatrix gradient, const RowSpans<float>& row_gradients) {
  AddBagsMax(bags, largest, slice, gradient, row_gradients);
}
void PoolBagsMaxBackward(const Bags& bags, const uint32_t* largest, RowSlice slice,
                         Bf16Matrix gradient, const RowSpans<float>& row_gradients) {
  AddBagsMax(bags, largest, slice, gradient, row_gradients);
}

}  // namespace hdps
