// Bags on the device: one thread pools a few adjacent elements of the output; in the backward one
// thread sums the gradients of a few adjacent elements of a row.
#include <algorithm>
#include <utility>
#include <vector>

#include "common/job/spec/pooling.h"
#include "kernels/cuda/cuda_bf16.cuh"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_kernels.cuh"
#include "kernels/cuda/cuda_key_sort.cuh"
#include "kernels/cuda/cuda_staging.cuh"

namespace hdps {
namespace {

// The arrays of an index, as kernels read them.
struct DeviceBags {
  const uint32_t* offsets;      // [features * num_bags + 1], into keys of all features.
  const uint32_t* row_index;    // [keys]
  const float* weights;         // [keys] or null
  const uint32_t* row_offsets;  // [num_rows + 1], into the arrays of sorted keys.
  const uint32_t* sorted_rows;  // [keys]: the row of each sorted key, ascending.
  const uint32_t* key_of;       // [keys]: keys of a row, in order of feature, then of bag.
  const uint32_t* sorted_bags;  // [keys]: feature * num_bags + bag of each sorted key.
  uint32_t* largest;            // [features, bags, dim] under kMax: see PoolBagsMax.
  uint32_t num_features, num_bags, num_rows, num_keys;
};

// The sorted keys are cut into segments of this many. A thread adds up one segment, so a row with
// many keys is shared by many threads. Rows are cut by their places in the sorted list alone, so
// sums have the same order in every run.
constexpr uint32_t kSegmentKeys = 64;
// Gradients that a thread reads before it adds the first of them.
constexpr uint32_t kKeysAtOnce = 8;

// One thread a bag: writes the bag's number for each of its keys.
__global__ void TellBags(const uint32_t* offsets, size_t bags, uint32_t* bag_of) {
  const size_t bag = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (bag >= bags) return;
  for (uint32_t k = offsets[bag]; k < offsets[bag + 1]; ++k) bag_of[k] = static_cast<uint32_t>(bag);
}

// Sets bags[i] to the bag of the i-th sorted key.
__global__ void SortBags(const uint32_t* key_of, const uint32_t* bag_of, size_t keys,
                         uint32_t* bags) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < keys) bags[i] = bag_of[key_of[i]];
}

// Invariant: the arrays on the device describe the features of the last Load(). The keys of each
// row are found there when a gradient first needs them.
class CudaBagIndex : public BagIndex {
 public:
  explicit CudaBagIndex(CudaCapture& capture)
      : offsets_(capture),
        row_index_(capture),
        bag_of_(capture),
        sorted_bags_(capture),
        largest_(capture),
        weights_(capture),
        carried_(capture),
        by_row_(capture) {}

  void Load(CudaStaging& staging, std::span<const Bags> features, uint32_t num_rows);
  void Transpose(cudaStream_t stream);
  DeviceBags view() const {
    return {offsets_.data(),
            row_index_.data(),
            weighted_ ? weights_.data() : nullptr,
            by_row_.row_offsets(),
            by_row_.sorted_rows(),
            by_row_.positions(),
            sorted_bags_.data(),
            largest_.data(),
            num_features_,
            num_bags_,
            num_rows_,
            num_keys_};
  }
  // Reserves memory for the largest key of each bag and column.
  void ReserveLargest(uint32_t dim) { largest_.Reserve(size_t{num_features_} * num_bags_ * dim); }
  // Room for the sums of rows that began in an earlier segment, [segments, dim].
  float* ReserveCarried(uint32_t dim) { return carried_.Reserve(Segments() * dim); }
  size_t Segments() const { return (num_keys_ + kSegmentKeys - 1) / kSegmentKeys; }

 private:
  uint32_t num_features_ = 0, num_bags_ = 0, num_rows_ = 0, num_keys_ = 0;
  bool weighted_ = false, transposed_ = false;
  CudaArray<uint32_t> offsets_, row_index_, bag_of_, sorted_bags_, largest_;
  CudaArray<float> weights_, carried_;
  CudaKeySort by_row_;
};

void CudaBagIndex::Load(CudaStaging& staging, std::span<const Bags> features, uint32_t num_rows) {
  num_features_ = static_cast<uint32_t>(features.size());
  num_bags_ = features.empty() ? 0 : static_cast<uint32_t>(features[0].num_bags());
  num_rows_ = num_rows;
  weighted_ = transposed_ = false;
  std::vector<uint32_t> first;  // [features]: its first key among those of all.
  size_t keys = 0;
  for (const Bags& bags : features) {
    CHECK_EQ(bags.num_bags(), num_bags_);
    weighted_ |= !bags.weights.empty();
    first.push_back(static_cast<uint32_t>(keys));
    keys += bags.row_index.size();
  }
  num_keys_ = static_cast<uint32_t>(keys);

  // Each feature is written by one thread, straight to where the copy to the device begins.
  auto* const offsets = staging.Place(size_t{num_features_} * num_bags_ + 1, &offsets_);
  offsets[0] = 0;
  staging.ForEach(features.size(), [&](size_t f) {
    const std::span<const uint32_t> own = features[f].offsets;
    uint32_t* const to = offsets + f * num_bags_;
    for (size_t b = 1; b <= num_bags_; ++b) to[b] = first[f] + own[b];
  });
  auto* const row_index = staging.Place(keys, &row_index_);
  staging.ForEach(features.size(), [&](size_t f) {
    std::ranges::copy(features[f].row_index, row_index + first[f]);
  });
  if (!weighted_) return;
  auto* const weights = staging.Place(keys, &weights_);
  staging.ForEach(features.size(), [&](size_t f) {
    const std::span<const float> own = features[f].weights;
    std::ranges::copy(own, weights + first[f]);
    if (own.empty()) std::fill_n(weights + first[f], features[f].row_index.size(), 1.0f);
  });
}

void CudaBagIndex::Transpose(cudaStream_t stream) {
  if (std::exchange(transposed_, true)) return;
  const size_t bags = size_t{num_features_} * num_bags_;
  by_row_.Sort(stream, row_index_.data(), num_keys_, num_rows_);
  uint32_t* const bag_of = bag_of_.Reserve(num_keys_);
  uint32_t* const sorted_bags = sorted_bags_.Reserve(num_keys_);
  if (bags == 0 || num_keys_ == 0) return;
  StartKernel(TellBags, BlocksFor(bags), kThreadsABlock, stream, offsets_.data(), bags, bag_of);
  StartKernel(SortBags, BlocksFor(num_keys_), kThreadsABlock, stream, by_row_.positions(), bag_of,
              size_t{num_keys_}, sorted_bags);
}

__device__ float BagScale(const DeviceBags& bags, Pooling pooling, uint32_t bag) {
  const uint32_t keys = bags.offsets[bag + 1] - bags.offsets[bag];
  return pooling == Pooling::kMean && keys > 0 ? 1.0f / static_cast<float>(keys) : 1.0f;
}

// Returns the largest value of one bag's keys in one column; stores the key in `largest`.
__device__ float LargestOf(const DeviceBags& bags, uint32_t bag, const float* rows, uint32_t dim,
                           size_t d) {
  uint32_t which = kNoKey;
  float best = 0.0f;
  for (uint32_t k = bags.offsets[bag]; k < bags.offsets[bag + 1]; ++k) {
    const float weight = bags.weights == nullptr ? 1.0f : bags.weights[k];
    const float value = weight * rows[bags.row_index[k] * size_t{dim} + d];
    if (which != kNoKey && !(value > best)) continue;
    best = value;
    which = k;
  }
  bags.largest[size_t{bag} * dim + d] = which;
  return best;
}

// One thread computes kWidth adjacent elements of `out`, which belong to one feature.
template <size_t kWidth, typename To>
__global__ void PoolKernel(DeviceBags bags, PoolSpec spec, const float* rows, To out) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const auto pieces = static_cast<uint32_t>(out.cols / kWidth);
  const uint32_t row = i / pieces, col = i % pieces * static_cast<uint32_t>(kWidth);
  if (row >= out.rows) return;
  const uint32_t of_column = col / spec.dim, d = col % spec.dim;
  const bool side_by_side = spec.combine == Combine::kConcat;
  const uint32_t first = side_by_side ? of_column : 0;
  const uint32_t last = side_by_side ? first + 1 : bags.num_features;
  Neighbours<kWidth> total = {};
  for (uint32_t f = first; f < last; ++f) {
    const uint32_t bag = f * bags.num_bags + row;
    if (spec.pooling == Pooling::kMax) {
      for (size_t w = 0; w < kWidth; ++w) {
        total.at[w] += LargestOf(bags, bag, rows, spec.dim, d + w);
      }
      continue;
    }
    const float scale = BagScale(bags, spec.pooling, bag);
    Neighbours<kWidth> sum = {};
    for (uint32_t k = bags.offsets[bag]; k < bags.offsets[bag + 1]; ++k) {
      const float factor = bags.weights == nullptr ? scale : bags.weights[k] * scale;
      sum.Add(Neighbours<kWidth>::From(rows + bags.row_index[k] * size_t{spec.dim} + d), factor);
    }
    total.Add(sum, 1.0f);
  }
  Store(total, out, row, col);
}

// One thread computes kWidth adjacent elements of the row gradients; it adds the row's keys in
// order.
template <size_t kWidth>
struct KeyGradient {
  template <typename From>
  __device__ static KeyGradient Of(const DeviceBags& bags, const PoolSpec& spec,
                                   const From& gradient, uint32_t at, uint32_t d) {
    const uint32_t bag = bags.sorted_bags[at];
    const uint32_t feature = bag / bags.num_bags, example = bag % bags.num_bags;
    const uint32_t col = spec.combine == Combine::kConcat ? feature * spec.dim + d : d;
    KeyGradient found;
    found.value = Load<kWidth>(gradient, example, col);
    found.factor = BagScale(bags, spec.pooling, bag);
    if (bags.weights != nullptr) found.factor *= bags.weights[bags.key_of[at]];
    for (size_t w = 0; spec.pooling == Pooling::kMax && w < kWidth; ++w) {
      const bool counts = bags.largest[size_t{bag} * spec.dim + d + w] == bags.key_of[at];
      if (!counts) found.value.at[w] = 0.0f;
    }
    return found;
  }
  Neighbours<kWidth> value;
  float factor;
};

// One thread kWidth columns of a segment. It adds a row's keys in their order. The sum of a row
// that began in an earlier segment goes to `carried` [segments, dim], every other to its row.
template <size_t kWidth, typename From>
__global__ void AddUpSegments(DeviceBags bags, PoolSpec spec, From gradient, Write write,
                              float* row_gradients, float* carried) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, pieces = spec.dim / kWidth;
  const uint32_t segment = i / pieces, d = i % pieces * static_cast<uint32_t>(kWidth);
  const uint32_t begin = segment * kSegmentKeys;
  if (begin >= bags.num_keys) return;
  const uint32_t end = min(begin + kSegmentKeys, bags.num_keys);
  uint32_t row = bags.sorted_rows[begin];
  float* to = row_gradients + size_t{row} * spec.dim + d;
  Neighbours<kWidth> sum = {};
  if (begin > bags.row_offsets[row]) {
    to = carried + size_t{segment} * spec.dim + d;
  } else if (write == Write::kAdd) {
    sum = Neighbours<kWidth>::From(to);
  }
  for (uint32_t first = begin; first < end; first += kKeysAtOnce) {
    KeyGradient<kWidth> keys[kKeysAtOnce];
    uint32_t rows[kKeysAtOnce];
    for (uint32_t k = 0; k < kKeysAtOnce; ++k) {
      if (first + k >= end) continue;
      rows[k] = bags.sorted_rows[first + k];
      keys[k] = KeyGradient<kWidth>::Of(bags, spec, gradient, first + k, d);
    }
    for (uint32_t k = 0; k < kKeysAtOnce; ++k) {
      if (first + k >= end) continue;
      if (rows[k] != row) {
        sum.To(to);
        row = rows[k];
        to = row_gradients + size_t{row} * spec.dim + d;
        sum = write == Write::kAdd ? Neighbours<kWidth>::From(to) : Neighbours<kWidth>{};
      }
      sum.Add(keys[k].value, keys[k].factor);
    }
  }
  sum.To(to);
}

// One thread kWidth columns of a row: adds what was carried to it, in the order of the segments. A
// row without keys becomes zero unless it is added to.
template <size_t kWidth>
__global__ void AddCarried(DeviceBags bags, uint32_t dim, Write write, const float* carried,
                           float* row_gradients) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t pieces = dim / static_cast<uint32_t>(kWidth);
  const uint32_t row = i / pieces, d = i % pieces * static_cast<uint32_t>(kWidth);
  if (row >= bags.num_rows) return;
  const uint32_t begin = bags.row_offsets[row], end = bags.row_offsets[row + 1];
  float* const to = row_gradients + size_t{row} * dim + d;
  if (begin == end) {
    if (write == Write::kOver) Neighbours<kWidth>{}.To(to);
    return;
  }
  const uint32_t first = begin / kSegmentKeys, last = (end - 1) / kSegmentKeys;
  if (first == last) return;
  auto sum = Neighbours<kWidth>::From(to);
  for (uint32_t segment = first + 1; segment <= last; ++segment) {
    sum.Add(Neighbours<kWidth>::From(carried + size_t{segment} * dim + d), 1.0f);
  }
  sum.To(to);
}

// Blocks for one thread an item, whose number is one of 32 bits.
unsigned BlocksFor32(size_t items) {
  CHECK_LE(items, size_t{UINT32_MAX} - kThreadsABlock);
  return BlocksFor(items);
}

template <size_t kWidth, typename From>
void LaunchBackward(cudaStream_t stream, CudaBagIndex& index, const PoolSpec& spec,
                    const From& gradient, Write write, float* row_gradients) {
  float* const carried = index.ReserveCarried(spec.dim);
  const DeviceBags bags = index.view();
  const size_t pieces = spec.dim / kWidth;
  if (bags.num_keys > 0) {
    StartKernel(AddUpSegments<kWidth, From>, BlocksFor32(index.Segments() * pieces), kThreadsABlock,
                stream, bags, spec, gradient, write, row_gradients, carried);
  }
  StartKernel(AddCarried<kWidth>, BlocksFor32(bags.num_rows * pieces), kThreadsABlock, stream, bags,
              spec.dim, write, static_cast<const float*>(carried), row_gradients);
}

}  // namespace

void CudaLoadBags(CudaStaging& staging, std::span<const Bags> features, uint32_t num_rows,
                  std::unique_ptr<BagIndex>* index) {
  if (*index == nullptr) *index = std::make_unique<CudaBagIndex>(staging.capture());
  static_cast<CudaBagIndex&>(**index).Load(staging, features, num_rows);
}

template <typename To>
void CudaPool(cudaStream_t stream, BagIndex& index, const PoolSpec& spec, const float* rows,
              const To& out) {
  if (out.rows == 0) return;
  auto& loaded = static_cast<CudaBagIndex&>(index);
  if (spec.pooling == Pooling::kMax) loaded.ReserveLargest(spec.dim);
  const bool wide = IsWide(rows, spec.dim) && IsWide(out);
  StartKernel(wide ? PoolKernel<kWide, To> : PoolKernel<1, To>,
              BlocksFor32(out.rows * out.cols / (wide ? kWide : 1)), kThreadsABlock, stream,
              loaded.view(), spec, rows, out);
}

template <typename From>
void CudaPoolBackward(cudaStream_t stream, BagIndex& index, const PoolSpec& spec,
                      const From& gradient, Write write, float* row_gradients) {
  auto& loaded = static_cast<CudaBagIndex&>(index);
  loaded.Transpose(stream);
  if (loaded.view().num_rows == 0) return;
  const bool wide = IsWide(row_gradients, spec.dim) && IsWide(gradient);
  const auto launch = wide ? LaunchBackward<kWide, From> : LaunchBackward<1, From>;
  launch(stream, loaded, spec, gradient, write, row_gradients);
}

template void CudaPool(cudaStream_t, BagIndex&, const PoolSpec&, const float*, const Matrix&);
template void CudaPool(cudaStream_t, BagIndex&, const PoolSpec&, const float*, const Bf16Matrix&);
template void CudaPoolBackward(cudaStream_t, BagIndex&, const PoolSpec&, const ConstMatrix&, Write,
                               float*);
template void CudaPoolBackward(cudaStream_t, BagIndex&, const PoolSpec&, const Bf16Matrix&, Write,
                               float*);

}  // namespace hdps
