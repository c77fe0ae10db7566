// Bags on the device: one thread pools a few adjacent elements of the output; in the backward one
// thread sums the gradients of a few adjacent elements of a row.
#include <utility>
#include <vector>

#include "common/job/spec/pooling.h"
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
  const uint32_t* row_offsets;  // [num_rows + 1], into the array below.
  const uint32_t* key_of;       // [keys]: keys of a row, in order of feature, then of bag.
  const uint32_t* bag_of;       // [keys]: feature * num_bags + bag of a key.
  uint32_t* largest;            // [features, bags, dim] under kMax: see PoolBagsMax.
  uint32_t num_features, num_bags, num_rows;
};

// One thread a bag: writes the bag's number for each of its keys.
__global__ void TellBags(const uint32_t* offsets, size_t bags, uint32_t* bag_of) {
  const size_t bag = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (bag >= bags) return;
  for (uint32_t k = offsets[bag]; k < offsets[bag + 1]; ++k) bag_of[k] = static_cast<uint32_t>(bag);
}

// Invariant: the arrays on the device describe the features of the last Load(). The keys of each
// row are found there when a gradient first needs them.
class CudaBagIndex : public BagIndex {
 public:
  explicit CudaBagIndex(CudaCapture& capture)
      : offsets_(capture),
        row_index_(capture),
        bag_of_(capture),
        largest_(capture),
        weights_(capture),
        by_row_(capture) {}

  void Load(CudaStaging& staging, std::span<const Bags> features, uint32_t num_rows);
  void Transpose(cudaStream_t stream);
  DeviceBags view() const {
    return {offsets_.data(),
            row_index_.data(),
            weighted_ ? weights_.data() : nullptr,
            by_row_.row_offsets(),
            by_row_.positions(),
            bag_of_.data(),
            largest_.data(),
            num_features_,
            num_bags_,
            num_rows_};
  }
  // Reserves memory for the largest key of each bag and column.
  void ReserveLargest(uint32_t dim) { largest_.Reserve(size_t{num_features_} * num_bags_ * dim); }

 private:
  void Gather(std::span<const Bags> features);

  uint32_t num_features_ = 0, num_bags_ = 0, num_rows_ = 0;
  bool weighted_ = false, transposed_ = false;
  struct {
    std::vector<uint32_t> offsets, row_index;
    std::vector<float> weights;
  } host_;
  CudaArray<uint32_t> offsets_, row_index_, bag_of_, largest_;
  CudaArray<float> weights_;
  CudaKeySort by_row_;
};

void CudaBagIndex::Gather(std::span<const Bags> features) {
  weighted_ = false;
  for (const Bags& bags : features) weighted_ |= !bags.weights.empty();
  host_.offsets.assign(1, 0);
  host_.row_index.clear();
  host_.weights.clear();
  for (const Bags& bags : features) {
    CHECK_EQ(bags.num_bags(), num_bags_);
    const auto base = static_cast<uint32_t>(host_.row_index.size());
    for (size_t b = 1; b <= num_bags_; ++b) host_.offsets.push_back(base + bags.offsets[b]);
    host_.row_index.insert(host_.row_index.end(), bags.row_index.begin(), bags.row_index.end());
    if (bags.weights.empty()) {
      if (weighted_) host_.weights.resize(host_.row_index.size(), 1.0f);
    } else {
      host_.weights.insert(host_.weights.end(), bags.weights.begin(), bags.weights.end());
    }
  }
}

void CudaBagIndex::Load(CudaStaging& staging, std::span<const Bags> features, uint32_t num_rows) {
  num_features_ = static_cast<uint32_t>(features.size());
  num_bags_ = features.empty() ? 0 : static_cast<uint32_t>(features[0].num_bags());
  num_rows_ = num_rows;
  Gather(features);
  transposed_ = false;
  const auto upload = [&staging](const auto& from, auto& to) {
    staging.Upload(std::span(std::as_const(from)), &to);
  };
  upload(host_.offsets, offsets_);
  upload(host_.row_index, row_index_);
  upload(host_.weights, weights_);
}

void CudaBagIndex::Transpose(cudaStream_t stream) {
  if (std::exchange(transposed_, true)) return;
  const size_t keys = host_.row_index.size(), bags = host_.offsets.size() - 1;
  by_row_.Sort(stream, row_index_.data(), keys, num_rows_);
  uint32_t* const bag_of = bag_of_.Reserve(keys);
  if (bags == 0) return;
  StartKernel(TellBags, BlocksFor(bags), kThreadsABlock, stream, offsets_.data(), bags, bag_of);
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

// Adjacent elements of a row that one thread computes; four of them are read and written at once.
template <size_t kWidth>
struct alignas(kWidth * sizeof(float)) Neighbours {
  float at[kWidth];

  __device__ static Neighbours From(const float* data) {
    return *reinterpret_cast<const Neighbours*>(data);
  }
  __device__ void To(float* data) const { *reinterpret_cast<Neighbours*>(data) = *this; }
  __device__ void Add(const Neighbours& other, float factor) {
    for (size_t w = 0; w < kWidth; ++w) at[w] += factor * other.at[w];
  }
};
constexpr size_t kWide = 4;

// Returns whether rows can be read four elements at once.
bool IsWide(const float* data, size_t stride) {
  return reinterpret_cast<uintptr_t>(data) % sizeof(Neighbours<kWide>) == 0 && stride % kWide == 0;
}

// One thread computes kWidth adjacent elements of `out`, which belong to one feature.
template <size_t kWidth>
__global__ void PoolKernel(DeviceBags bags, PoolSpec spec, const float* rows, Matrix out) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x, pieces = out.cols / kWidth;
  if (i >= out.rows * pieces) return;
  const size_t row = i / pieces, col = i % pieces * kWidth, d = col % spec.dim;
  const bool side_by_side = spec.combine == Combine::kConcat;
  const uint32_t first = side_by_side ? static_cast<uint32_t>(col / spec.dim) : 0;
  const uint32_t last = side_by_side ? first + 1 : bags.num_features;
  Neighbours<kWidth> total = {};
  for (uint32_t f = first; f < last; ++f) {
    const uint32_t bag = f * bags.num_bags + static_cast<uint32_t>(row);
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
  total.To(out.data + row * out.stride + col);
}

// One thread computes kWidth adjacent elements of the row gradients; it adds the row's keys in
// order.
template <size_t kWidth>
__global__ void PoolBackwardKernel(DeviceBags bags, PoolSpec spec, ConstMatrix gradient,
                                   Write write, float* row_gradients) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x, pieces = spec.dim / kWidth;
  if (i >= bags.num_rows * pieces) return;
  const size_t row = i / pieces, d = i % pieces * kWidth;
  float* const to = row_gradients + row * spec.dim + d;
  Neighbours<kWidth> sum = {};
  if (write == Write::kAdd) sum = Neighbours<kWidth>::From(to);
  for (uint32_t at = bags.row_offsets[row]; at < bags.row_offsets[row + 1]; ++at) {
    const uint32_t key = bags.key_of[at], bag = bags.bag_of[key];
    const float scale = BagScale(bags, spec.pooling, bag);
    const float factor = bags.weights == nullptr ? scale : bags.weights[key] * scale;
    const size_t col = spec.combine == Combine::kConcat ? bag / bags.num_bags * spec.dim + d : d;
    const auto of_bag =
        Neighbours<kWidth>::From(gradient.data + bag % bags.num_bags * gradient.stride + col);
    if (spec.pooling != Pooling::kMax) {
      sum.Add(of_bag, factor);
      continue;
    }
    for (size_t w = 0; w < kWidth; ++w) {
      const bool counts = bags.largest[size_t{bag} * spec.dim + d + w] == key;
      if (counts) sum.at[w] += factor * of_bag.at[w];
    }
  }
  sum.To(to);
}

}  // namespace

void CudaLoadBags(CudaStaging& staging, std::span<const Bags> features, uint32_t num_rows,
                  std::unique_ptr<BagIndex>* index) {
  if (*index == nullptr) *index = std::make_unique<CudaBagIndex>(staging.capture());
  static_cast<CudaBagIndex&>(**index).Load(staging, features, num_rows);
}

void CudaPool(cudaStream_t stream, BagIndex& index, const PoolSpec& spec, const float* rows,
              Matrix out) {
  if (out.rows == 0) return;
  auto& loaded = static_cast<CudaBagIndex&>(index);
  if (spec.pooling == Pooling::kMax) loaded.ReserveLargest(spec.dim);
  const bool wide = IsWide(rows, spec.dim) && IsWide(out.data, out.stride);
  StartKernel(wide ? PoolKernel<kWide> : PoolKernel<1>,
              BlocksFor(out.rows * out.cols / (wide ? kWide : 1)), kThreadsABlock, stream,
              loaded.view(), spec, rows, out);
}

void CudaPoolBackward(cudaStream_t stream, BagIndex& index, const PoolSpec& spec,
                      ConstMatrix gradient, Write write, float* row_gradients) {
  auto& loaded = static_cast<CudaBagIndex&>(index);
  loaded.Transpose(stream);
  const DeviceBags bags = loaded.view();
  if (bags.num_rows == 0) return;
  const bool wide = IsWide(row_gradients, spec.dim) && IsWide(gradient.data, gradient.stride);
  StartKernel(wide ? PoolBackwardKernel<kWide> : PoolBackwardKernel<1>,
              BlocksFor(size_t{bags.num_rows} * spec.dim / (wide ? kWide : 1)), kThreadsABlock,
              stream, bags, spec, gradient, write, row_gradients);
}

}  // namespace hdps
