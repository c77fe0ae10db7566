// Rows of a slab on the device: gathered, updated, read and written by slot.
#include <algorithm>

#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_row_slab.cuh"

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
  StartKernel(ForRowFloats<Function>, BlocksFor(n * floats), kThreadsABlock, stream, n, floats, f);
}

// The sum of ((values[i] * part_scale) * scale)^2 in the order of SumOfSquares on the host: element
// i goes to partial sum i % 16, then halves are added to halves.
__device__ float SumOfSquaresInLanes(const float* values, float part_scale, float scale,
                                     size_t count) {
  constexpr size_t kLanes = 16;
  float lanes[kLanes] = {};
  for (size_t i = 0; i < count; ++i) {
    const float g = (values[i] * part_scale) * scale;
    lanes[i % kLanes] += g * g;
  }
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

// One update of the rows of a slab, as the device is told of it.
struct SlabUpdate {
  OptimizerSettings settings;
  float part_scale, scale;
  size_t n;
  const uint32_t* slots;  // [n]; null: row i is in slot i.
  const float* gradients;
  RowSlab slab;

  __device__ uint32_t SlotOf(size_t i) const {
    return slots == nullptr ? static_cast<uint32_t>(i) : slots[i];
  }
};

// One thread a row: what all weights of the row have in common, where that depends on the row.
template <typename Rule>
__global__ void FindFactors(SlabUpdate u, typename Rule::Factor* factors) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= u.n || u.SlotOf(i) == kNotInSlab) return;
  const size_t dim = u.slab.dim;
  float* const state = u.slab.data + size_t{u.SlotOf(i)} * (dim + u.slab.state_floats) + dim;
  float* const kept = state + Rule::kStateArrays * dim;
  if constexpr (Rule::kFactorOf == FactorOf::kUpdates) {
    factors[i] = Rule::FactorAt(u.settings, CountUpdate(kept));
  } else if constexpr (Rule::kFactorOf == FactorOf::kSquares) {
    const float squares = SumOfSquaresInLanes(u.gradients + i * dim, u.part_scale, u.scale, dim);
    factors[i] = Rule::FactorFrom(u.settings, squares / static_cast<float>(dim), kept);
  }
}

// Changes the rows; writes 1 to `bad` where a scaled gradient is not finite. `factors` has one for
// each row, or, where they depend on the step alone, is null and `of_step` counts.
template <typename Rule>
void LaunchUpdate(cudaStream_t stream, const SlabUpdate& u, const typename Rule::Factor* factors,
                  typename Rule::Factor of_step, int* bad) {
  LaunchForRowFloats(stream, u.n, u.slab.dim, [=] __device__(size_t i, uint32_t d) {
    if (u.SlotOf(i) == kNotInSlab) return;
    const size_t dim = u.slab.dim;
    const float g = (u.gradients[i * dim + d] * u.part_scale) * u.scale;
    if (!isfinite(g)) *bad = 1;  // All who write it write the same.
    float* const w = u.slab.data + size_t{u.SlotOf(i)} * (dim + u.slab.state_floats) + d;
    const typename Rule::Factor factor = factors != nullptr ? factors[i] : of_step;
    if constexpr (Rule::kStateArrays == 0) {
      Rule::Update(u.settings, factor, g, w[0]);
    } else if constexpr (Rule::kStateArrays == 1) {
      Rule::Update(u.settings, factor, g, w[0], w[dim]);
    } else {
      Rule::Update(u.settings, factor, g, w[0], w[dim], w[2 * dim]);
    }
  });
}

template <typename Rule>
void UpdateBy(cudaStream_t stream, const SlabUpdate& u, int64_t step, CudaArray<float>* scratch,
              int* bad) {
  using Factor = typename Rule::Factor;
  if constexpr (Rule::kFactorOf == FactorOf::kStep) {
    LaunchUpdate<Rule>(stream, u, nullptr, Rule::FactorAt(u.settings, step), bad);
  } else if constexpr (Rule::kFactorOf == FactorOf::kNothing) {
    LaunchUpdate<Rule>(stream, u, nullptr, Factor(), bad);
  } else {
    static_assert(sizeof(Factor) % sizeof(float) == 0);
    float* const floats = scratch->Reserve(u.n * sizeof(Factor) / sizeof(float));
    auto* const factors = reinterpret_cast<Factor*>(floats);
    StartKernel(FindFactors<Rule>, BlocksFor(u.n), kThreadsABlock, stream, u, factors);
    LaunchUpdate<Rule>(stream, u, factors, Factor(), bad);
  }
}

}  // namespace

void CudaRowSlabs::Gather(const RowSlab& slab, std::span<const uint32_t> slots,
                          std::span<const float> outside, float* rows) {
  const uint32_t dim = slab.dim;
  CHECK_EQ(outside.size(), slots.size() * dim);
  sources_.assign(slots.begin(), slots.end());
  uint32_t num_outside = 0;
  for (uint32_t& source : sources_) {
    if (source == kNotInSlab) source = kOutside | num_outside++;
  }
  const uint32_t* sources = staging_.Upload(std::span<const uint32_t>(sources_), &slots_);
  const size_t row_bytes = dim * sizeof(float);
  const float* packed = scratch_.Reserve(size_t{num_outside} * dim);
  auto* to = static_cast<float*>(staging_.Place(num_outside * row_bytes, scratch_.data()));
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == kNotInSlab) to = std::copy_n(outside.data() + i * dim, dim, to);
  }
  staging_.Flush();
  LaunchForRowFloats(stream_, slots.size(), dim, [=] __device__(size_t i, uint32_t d) {
    const uint32_t source = sources[i];
    rows[i * dim + d] = (source & kOutside) != 0
                            ? packed[size_t{source & ~kOutside} * dim + d]
                            : slab.data[size_t{source} * (slab.dim + slab.state_floats) + d];
  });
}

void CudaRowSlabs::FetchOutside(std::span<const uint32_t> slots, uint32_t dim, const float* rows,
                                std::span<float> to) {
  CHECK_EQ(to.size(), slots.size() * dim);
  sources_.clear();
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == kNotInSlab) sources_.push_back(static_cast<uint32_t>(i));
  }
  if (sources_.empty()) return;
  const uint32_t* sources = staging_.Upload(std::span<const uint32_t>(sources_), &slots_);
  staging_.Flush();
  auto* const floats = staging_.Space<float>(sources_.size() * dim);
  LaunchForRowFloats(stream_, sources_.size(), dim, [=] __device__(size_t i, uint32_t d) {
    floats[i * dim + d] = rows[size_t{sources[i]} * dim + d];
  });
  staging_.FetchLater(floats, sources_.size() * dim * sizeof(float),
                      [dim, to, places = sources_](const std::byte* bytes) {
                        const auto* from = reinterpret_cast<const float*>(bytes);
                        for (const uint32_t place : places) {
                          std::copy_n(from, dim, to.data() + size_t{place} * dim);
                          from += dim;
                        }
                      });
}

int* CudaRowSlabs::UpdateSlots(const RowUpdate& update, size_t n, const uint32_t* slots,
                               const float* gradients, const RowSlab& slab) {
  // Workers refuse a job whose own optimizer would come here.
  CHECK(update.rule.kind != OptimizerKind::kOwn) << OptimizerName(update.rule);
  int* const bad = bad_.Reserve(1);
  HDPS_CUDA_CHECK(cudaMemsetAsync(bad, 0, sizeof(int), stream_));
  const SlabUpdate u{update.rule, update.part_scale, update.scale, n, slots, gradients, slab};
  WithOptimizer(update.rule.kind, [&](auto rule) {
    using Rule = decltype(rule);
    if constexpr (Rule::kWholeTensors) {
      LOG(FATAL) << Rule::kName << " changes whole tensors, not rows";
    } else {
      UpdateBy<Rule>(stream_, u, update.step, &scratch_, bad);
    }
  });
  return bad;
}

bool CudaRowSlabs::Update(const RowUpdate& update, std::span<const uint32_t> slots,
                          const float* gradients, const RowSlab& slab) {
  if (slots.empty()) return true;
  const uint32_t* const on_device = staging_.Upload(slots, &slots_);
  staging_.Flush();
  const int* const bad = UpdateSlots(update, slots.size(), on_device, gradients, slab);
  int found = 0;
  staging_.FetchLater(bad, sizeof(int), &found);
  staging_.StartFetches();
  staging_.EndFetches();
  return found == 0;
}

void CudaRowSlabs::UpdateFirst(const RowUpdate& update, size_t count, const float* gradients,
                               const RowSlab& slab) {
  staging_.Flush();
  if (count > 0) UpdateSlots(update, count, nullptr, gradients, slab);
}

void CudaRowSlabs::Read(const RowSlab& slab, std::span<const uint32_t> slots, std::span<float> to) {
  const uint32_t floats = slab.row_floats();
  CHECK_EQ(to.size(), slots.size() * floats);
  if (slots.empty()) return;
  const uint32_t* on_device = staging_.Upload(slots, &slots_);
  staging_.Flush();
  float* packed = scratch_.Reserve(to.size());
  LaunchForRowFloats(stream_, slots.size(), floats, [=] __device__(size_t i, uint32_t f) {
    packed[i * floats + f] = slab.data[size_t{on_device[i]} * floats + f];
  });
  staging_.FetchLater(packed, to.size_bytes(), to.data());
  staging_.StartFetches();
  staging_.EndFetches();
}

void CudaRowSlabs::Write(std::span<const float> from, std::span<const uint32_t> slots,
                         const RowSlab& slab) {
  const uint32_t floats = slab.row_floats();
  CHECK_EQ(from.size(), slots.size() * floats);
  const uint32_t* on_device = staging_.Upload(slots, &slots_);
  const float* packed = staging_.Upload(from, &scratch_);
  staging_.Flush();
  LaunchForRowFloats(stream_, slots.size(), floats, [=] __device__(size_t i, uint32_t f) {
    slab.data[size_t{on_device[i]} * floats + f] = packed[i * floats + f];
  });
}

}  // namespace hdps
