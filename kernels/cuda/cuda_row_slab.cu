// Rows of a slab on the device: gathered, updated, read and written by slot.
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_row_slab.cuh"
#include "kernels/update_rules.h"

namespace hdps {
namespace {

// Set in a source whose row is not in the slab: the rest is its number among those outside.
constexpr uint32_t kOutside = 0x80000000u;

// One thread a float of n rows of `floats`: f(row, column).
template <typename Function>
__global__ void ForRowFloats(size_t n, uint32_t floats, Function f) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n * floats) f(i / floats, static_cast<uint32_t>(i % floats));
}

template <typename Function>
void LaunchForRowFloats(cudaStream_t stream, size_t n, uint32_t floats, Function f) {
  if (n * floats == 0) return;
  ForRowFloats<<<BlocksFor(n * floats), kThreadsABlock, 0, stream>>>(n, floats, f);
  HDPS_CUDA_CHECK(cudaGetLastError());
}

// One thread a row: what the whole row has in common. factors[2 i ...] are Adam's corrections or,
// in the first, row-wise Adagrad's rate.
__global__ void PrepareRows(RowUpdate update, size_t n, const uint32_t* slots,
                            const float* gradients, RowSlab slab, float* factors) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n || slots[i] == kNotInSlab) return;
  float* const state = slab.data + size_t{slots[i]} * (slab.dim + slab.state_floats) + slab.dim;
  if (update.rule.kind == OptimizerKind::kRowwiseAdagrad) {
    const float squares =
        SumOfSquaresInLanes(gradients + i * slab.dim, update.part_scale, update.scale, slab.dim);
    factors[2 * i] = RowwiseAdagradRate(update.rule, slab.dim, squares, state);
    return;
  }
  const AdamCorrection correction = update.rule.kind == OptimizerKind::kLazyAdam
                                        ? CorrectionAfter(update.rule, update.step)
                                        : CountUpdate(update.rule, state + 2 * slab.dim);
  factors[2 * i] = correction.first;
  factors[2 * i + 1] = correction.second;
}

}  // namespace

void CudaRowSlabs::Upload(cudaStream_t stream, std::span<const uint32_t> slots) {
  slots_.Upload(slots.data(), slots.size(), stream);
}

void CudaRowSlabs::Gather(cudaStream_t stream, const RowSlab& slab, std::span<const uint32_t> slots,
                          std::span<const float> outside, float* rows) {
  const uint32_t dim = slab.dim;
  CHECK_EQ(outside.size(), slots.size() * dim);
  sources_.clear();
  packed_.clear();
  uint32_t num_outside = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] != kNotInSlab) {
      sources_.push_back(slots[i]);
      continue;
    }
    sources_.push_back(kOutside | num_outside++);
    packed_.insert(packed_.end(), outside.begin() + static_cast<ptrdiff_t>(i * dim),
                   outside.begin() + static_cast<ptrdiff_t>((i + 1) * dim));
  }
  Upload(stream, sources_);
  scratch_.Upload(packed_.data(), packed_.size(), stream);
  const uint32_t* sources = slots_.data();
  const float* packed = scratch_.data();
  LaunchForRowFloats(stream, slots.size(), dim, [=] __device__(size_t i, uint32_t d) {
    const uint32_t source = sources[i];
    rows[i * dim + d] = (source & kOutside) != 0
                            ? packed[size_t{source & ~kOutside} * dim + d]
                            : slab.data[size_t{source} * (slab.dim + slab.state_floats) + d];
  });
}

void CudaRowSlabs::DownloadOutside(cudaStream_t stream, std::span<const uint32_t> slots,
                                   uint32_t dim, const float* rows, std::span<float> to) {
  CHECK_EQ(to.size(), slots.size() * dim);
  sources_.clear();
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == kNotInSlab) sources_.push_back(static_cast<uint32_t>(i));
  }
  if (sources_.empty()) return;
  Upload(stream, sources_);
  const uint32_t* sources = slots_.data();
  float* packed = scratch_.Reserve(sources_.size() * dim);
  LaunchForRowFloats(stream, sources_.size(), dim, [=] __device__(size_t i, uint32_t d) {
    packed[i * dim + d] = rows[size_t{sources[i]} * dim + d];
  });
  packed_.resize(sources_.size() * dim);
  HDPS_CUDA_CHECK(cudaMemcpyAsync(packed_.data(), packed, packed_.size() * sizeof(float),
                                  cudaMemcpyDeviceToHost, stream));
  HDPS_CUDA_CHECK(cudaStreamSynchronize(stream));
  for (size_t i = 0; i < sources_.size(); ++i) {
    std::copy_n(packed_.data() + i * dim, dim, to.data() + size_t{sources_[i]} * dim);
  }
}

bool CudaRowSlabs::Update(cudaStream_t stream, const RowUpdate& update,
                          std::span<const uint32_t> slots, const float* gradients,
                          const RowSlab& slab) {
  if (slots.empty()) return true;
  Upload(stream, slots);
  const uint32_t* on_device = slots_.data();
  float* factors = scratch_.Reserve(2 * slots.size());
  int* bad = bad_.Reserve(1);
  HDPS_CUDA_CHECK(cudaMemsetAsync(bad, 0, sizeof(int), stream));
  const OptimizerKind kind = update.rule.kind;
  const bool rowwise = kind == OptimizerKind::kRowwiseAdagrad;
  const bool adam = kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamW ||
                    kind == OptimizerKind::kLazyAdam;
  if (rowwise || adam) {
    PrepareRows<<<BlocksFor(slots.size()), kThreadsABlock, 0, stream>>>(
        update, slots.size(), on_device, gradients, slab, factors);
    HDPS_CUDA_CHECK(cudaGetLastError());
  }
  const uint32_t dim = slab.dim;
  LaunchForRowFloats(stream, slots.size(), dim, [=] __device__(size_t i, uint32_t d) {
    if (on_device[i] == kNotInSlab) return;
    const float g = (gradients[i * dim + d] * update.part_scale) * update.scale;
    if (!isfinite(g)) *bad = 1;  // All who write it write the same.
    float* const row = slab.data + size_t{on_device[i]} * (dim + slab.state_floats);
    if (rowwise) {
      row[d] -= factors[2 * i] * g;
      return;
    }
    const AdamCorrection correction =
        adam ? AdamCorrection{factors[2 * i], factors[2 * i + 1]} : AdamCorrection();
    UpdateWeight(update.rule, correction, g, row + d, row + dim + d, row + 2 * dim + d);
  });
  int found = 0;
  HDPS_CUDA_CHECK(cudaMemcpyAsync(&found, bad, sizeof(int), cudaMemcpyDeviceToHost, stream));
  HDPS_CUDA_CHECK(cudaStreamSynchronize(stream));
  return found == 0;
}

void CudaRowSlabs::Read(cudaStream_t stream, const RowSlab& slab, std::span<const uint32_t> slots,
                        std::span<float> to) {
  const uint32_t floats = slab.row_floats();
  CHECK_EQ(to.size(), slots.size() * floats);
  if (slots.empty()) return;
  Upload(stream, slots);
  const uint32_t* on_device = slots_.data();
  float* packed = scratch_.Reserve(to.size());
  LaunchForRowFloats(stream, slots.size(), floats, [=] __device__(size_t i, uint32_t f) {
    packed[i * floats + f] = slab.data[size_t{on_device[i]} * floats + f];
  });
  HDPS_CUDA_CHECK(
      cudaMemcpyAsync(to.data(), packed, to.size_bytes(), cudaMemcpyDeviceToHost, stream));
  HDPS_CUDA_CHECK(cudaStreamSynchronize(stream));
}

void CudaRowSlabs::Write(cudaStream_t stream, std::span<const float> from,
                         std::span<const uint32_t> slots, const RowSlab& slab) {
  const uint32_t floats = slab.row_floats();
  CHECK_EQ(from.size(), slots.size() * floats);
  Upload(stream, slots);
  scratch_.Upload(from.data(), from.size(), stream);
  const uint32_t* on_device = slots_.data();
  const float* packed = scratch_.data();
  LaunchForRowFloats(stream, slots.size(), floats, [=] __device__(size_t i, uint32_t f) {
    slab.data[size_t{on_device[i]} * floats + f] = packed[i * floats + f];
  });
}

}  // namespace hdps
