// Rows of a slab on the device: gathered, updated, read and written by slot.
#include <algorithm>
#include <utility>
#include <vector>

#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizer_rule.h"
#include "common/job/optimizers/optimizer_settings.h"
#include "common/job/optimizers/optimizers.h"
#include "kernels/cuda/cuda_check.cuh"
#include "kernels/cuda/cuda_row_slab.cuh"
#include "kernels/host/slab_update.h"

namespace hdps {
namespace {

// Marks a row outside the slab; the other bits are its number among the rows outside.
constexpr uint32_t kOutside = 0x80000000u;

class CudaSlabSlots : public SlabSlots {
 public:
  // Rows on their way to some address on the device.
  struct Packed {
    explicit Packed(CudaCapture& capture) : floats(capture) {}
    const float* to = nullptr;
    CudaArray<float> floats;
  };
  explicit CudaSlabSlots(CudaCapture& capture) : on_device(capture), capture_(capture) {}

  // Returns null if none are on their way.
  Packed* FindPacked(const float* to) const {
    for (size_t i = 0; i < used; ++i) {
      if (packed[i]->to == to) return packed[i].get();
    }
    return nullptr;
  }
  CudaArray<float>& PackedFor(const float* to) {
    if (Packed* const found = FindPacked(to)) return found->floats;
    if (used == packed.size()) packed.push_back(std::make_unique<Packed>(capture_));
    packed[used]->to = to;
    return packed[used++]->floats;
  }

  size_t size = 0;
  std::vector<uint32_t> outside;  // Rows that are not in the slab, ascending.
  std::vector<uint32_t> on_host;  // [size]
  CudaArray<uint32_t> on_device;  // [size]
  std::vector<std::unique_ptr<Packed>> packed;
  size_t used = 0;  // Number of `packed` in use.

 private:
  CudaCapture& capture_;
};

// Returns memory for an upload. Pending uploads to memory that grows are sent first; new memory has
// none, so all first uploads are sent in one copy.
template <typename T>
T* RoomFor(CudaStaging& staging, size_t size, CudaArray<T>* array) {
  if (array->size() > 0 && size > array->size()) staging.Flush();
  return array->Reserve(size);
}

// move(first, last) for parts of n rows, on the threads that copy within the host's memory.
template <typename Move>
void ForRows(const CudaStaging& staging, size_t n, const Move& move) {
  constexpr size_t kRows = 1024;
  staging.ForEach((n + kRows - 1) / kRows,
                  [&](size_t i) { move(i * kRows, std::min(n, (i + 1) * kRows)); });
}

CudaSlabSlots& Loaded(SlabSlots& slots) { return static_cast<CudaSlabSlots&>(slots); }

// Calls f(row, column) for n rows of `floats`, one thread a float.
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

// The update of a slab's rows, as kernels get it.
struct SlabUpdate {
  OptimizerSettings settings;
  float part_scale, scale;
  GradientFinish finish;
  size_t n;
  const uint32_t* slots;  // [n]; null: row i is in slot i.
  const float* gradients;
  RowSlab slab;
  float* not_finite;  // Null: not reported.

  // Returns null for a row outside.
  __device__ float* RowOf(size_t i) const {
    const uint32_t slot = slots == nullptr ? static_cast<uint32_t>(i) : slots[i];
    if (slots != nullptr && (slot & kOutside) != 0) return nullptr;
    return slab.data + size_t{slot} * (slab.dim + slab.state_floats);
  }
  __device__ float Scaled(size_t i, size_t d) const {
    return (gradients[i * slab.dim + d] * part_scale) * scale;
  }
  // Returns the gradient that the rule is given.
  __device__ float Finished(size_t i, size_t d, const float* row) const {
    return finish(Scaled(i, d), row[d]);
  }
};

// Returns the sum of squares of row i's finished gradient in the order of SumOfSquares on the host:
// element d goes to partial sum d % 16, then halves are added to halves.
__device__ float SumOfSquaresInLanes(const SlabUpdate& u, size_t i, const float* row) {
  constexpr size_t kLanes = 16;
  float lanes[kLanes] = {};
  for (size_t d = 0; d < u.slab.dim; ++d) {
    const float g = u.Finished(i, d, row);
    lanes[d % kLanes] += g * g;
  }
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

// One thread a row: SquaresOf() its finished gradient.
__global__ void FindRowSquares(SlabUpdate u, double* squares) {
  constexpr size_t kLanes = 8;
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= u.n) return;
  const float* const row = u.RowOf(i);
  double lanes[kLanes] = {};
  for (size_t d = 0; row != nullptr && d < u.slab.dim; ++d) {
    if (!isfinite(u.Scaled(i, d))) *u.not_finite = 1.0f;  // All threads write the same.
    const double g = u.Finished(i, d, row);
    lanes[d % kLanes] += g * g;
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  squares[i] = sum;
}

// One thread a row: the factor that all weights of the row share, if it depends on the row.
template <typename Rule>
__global__ void FindFactors(SlabUpdate u, typename Rule::Factor* factors) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= u.n) return;
  float* const row = u.RowOf(i);
  if (row == nullptr) return;
  const size_t dim = u.slab.dim;
  float* const kept = row + dim + Rule::kStateArrays * dim;
  if constexpr (Rule::kFactorOf == FactorOf::kUpdates) {
    factors[i] = Rule::FactorAt(u.settings, CountUpdate(kept));
  } else if constexpr (Rule::kFactorOf == FactorOf::kSquares) {
    const float squares = SumOfSquaresInLanes(u, i, row);
    factors[i] = Rule::FactorFrom(u.settings, squares / static_cast<float>(dim), kept);
  }
}

// Updates the rows. `factors` has one for each row; if they depend only on the step, it is null and
// `of_step` is used.
template <typename Rule>
void LaunchUpdate(cudaStream_t stream, const SlabUpdate& u, const typename Rule::Factor* factors,
                  typename Rule::Factor of_step) {
  LaunchForRowFloats(stream, u.n, u.slab.dim, [=] __device__(size_t i, uint32_t d) {
    float* const row = u.RowOf(i);
    if (row == nullptr) return;
    const size_t dim = u.slab.dim;
    // All threads write the same.
    if (u.not_finite != nullptr && !isfinite(u.Scaled(i, d))) *u.not_finite = 1.0f;
    const float g = u.Finished(i, d, row);
    float* const w = row + d;
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
void UpdateBy(cudaStream_t stream, const SlabUpdate& u, int64_t step, CudaArray<float>* scratch) {
  using Factor = typename Rule::Factor;
  if constexpr (Rule::kFactorOf == FactorOf::kStep) {
    LaunchUpdate<Rule>(stream, u, nullptr, Rule::FactorAt(u.settings, step));
  } else if constexpr (Rule::kFactorOf == FactorOf::kNothing) {
    LaunchUpdate<Rule>(stream, u, nullptr, Factor());
  } else {
    static_assert(sizeof(Factor) % sizeof(float) == 0);
    float* const floats = scratch->Reserve(u.n * sizeof(Factor) / sizeof(float));
    auto* const factors = reinterpret_cast<Factor*>(floats);
    StartKernel(FindFactors<Rule>, BlocksFor(u.n), kThreadsABlock, stream, u, factors);
    LaunchUpdate<Rule>(stream, u, factors, Factor());
  }
}

}  // namespace

void CudaRowSlabs::Load(std::span<const uint32_t> slots, std::unique_ptr<SlabSlots>* loaded) {
  if (*loaded == nullptr) *loaded = std::make_unique<CudaSlabSlots>(staging_.capture());
  CudaSlabSlots& to = Loaded(**loaded);
  to.size = slots.size();
  to.used = 0;
  to.outside.clear();
  to.on_host.assign(slots.begin(), slots.end());
  for (uint32_t i = 0; i < slots.size(); ++i) {
    if (slots[i] != kNotInSlab) continue;
    to.on_host[i] = kOutside | static_cast<uint32_t>(to.outside.size());
    to.outside.push_back(i);
  }
  uint32_t* const room = RoomFor(staging_, slots.size(), &to.on_device);
  staging_.Upload(to.on_host.data(), slots.size_bytes(), room);
}

void CudaRowSlabs::BringOutside(SlabSlots& slots, uint32_t dim, std::span<const float> outside,
                                float* rows) {
  CudaSlabSlots& by = Loaded(slots);
  CHECK_EQ(outside.size(), by.size * dim);
  const size_t floats = by.outside.size() * dim;
  float* const room = RoomFor(staging_, floats, &by.PackedFor(rows));
  auto* const to = static_cast<float*>(staging_.Place(floats * sizeof(float), room));
  ForRows(staging_, by.outside.size(), [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      std::copy_n(&outside[size_t{by.outside[i]} * dim], dim, to + i * dim);
    }
  });
}

void CudaRowSlabs::Gather(SlabSlots& slots, const RowSlab& slab, float* rows) {
  staging_.Flush();
  const CudaSlabSlots& by = Loaded(slots);
  const uint32_t* const at = by.on_device.data();
  const CudaSlabSlots::Packed* const brought = by.FindPacked(rows);
  const float* const packed = brought == nullptr ? nullptr : brought->floats.data();
  LaunchForRowFloats(stream_, by.size, slab.dim, [=] __device__(size_t i, uint32_t d) {
    const uint32_t slot = at[i];
    const size_t dim = slab.dim;
    if ((slot & kOutside) == 0) {
      rows[i * dim + d] = slab.data[size_t{slot} * (dim + slab.state_floats) + d];
    } else if (packed != nullptr) {
      rows[i * dim + d] = packed[size_t{slot & ~kOutside} * dim + d];
    }
  });
}

void CudaRowSlabs::FetchOutside(SlabSlots& slots, uint32_t dim, const float* rows,
                                std::span<float> to) {
  const CudaSlabSlots& by = Loaded(slots);
  CHECK_EQ(to.size(), by.size * dim);
  if (by.outside.empty()) return;
  staging_.Flush();
  const uint32_t* const at = by.on_device.data();
  auto* const floats = staging_.Space<float>(by.outside.size() * dim);
  const auto pick = [=] __device__(size_t i, uint32_t d) {
    const uint32_t slot = at[i];
    if ((slot & kOutside) == 0) return;
    floats[size_t{slot & ~kOutside} * dim + d] = rows[i * dim + d];
  };
  LaunchForRowFloats(stream_, by.size, dim, pick);
  staging_.FetchLater(floats, by.outside.size() * dim * sizeof(float),
                      [this, dim, to, places = by.outside](const std::byte* bytes) {
                        const auto* from = reinterpret_cast<const float*>(bytes);
                        ForRows(staging_, places.size(), [&](size_t first, size_t last) {
                          for (size_t i = first; i < last; ++i) {
                            std::copy_n(from + i * dim, dim, to.data() + size_t{places[i]} * dim);
                          }
                        });
                      });
}

void CudaRowSlabs::UpdateSlots(const RowUpdate& update, size_t n, const uint32_t* slots,
                               const float* gradients, const RowSlab& slab, float* not_finite) {
  // Workers refuse a job whose own optimizer would run here.
  CHECK(!update.rule.record->is_own()) << OptimizerName(update.rule);
  staging_.Flush();
  if (n == 0) return;
  const SlabUpdate u{update.rule, update.part_scale, update.scale, update.finish, n,
                     slots,       gradients,         slab,         not_finite};
  WithOptimizer(update.rule.record->kind, [&](auto rule) {
    using Rule = decltype(rule);
    if constexpr (Rule::kWholeTensors) {
      LOG(FATAL) << Rule::kName << " changes whole tensors, not rows";
    } else {
      UpdateBy<Rule>(stream_, u, update.step, &factors_);
    }
  });
}

void CudaRowSlabs::Update(const RowUpdate& update, SlabSlots& slots, const float* gradients,
                          const RowSlab& slab, float* not_finite) {
  const CudaSlabSlots& by = Loaded(slots);
  UpdateSlots(update, by.size, by.on_device.data(), gradients, slab, not_finite);
}

void CudaRowSlabs::UpdateFirst(const RowUpdate& update, size_t count, const float* gradients,
                               const RowSlab& slab) {
  UpdateSlots(update, count, nullptr, gradients, slab, nullptr);
}

void CudaRowSlabs::FetchSquares(const RowUpdate& update, SlabSlots& slots, const float* gradients,
                                const RowSlab& slab, std::span<double> squares, float* not_finite) {
  const CudaSlabSlots& by = Loaded(slots);
  CHECK_EQ(squares.size(), by.size);
  staging_.Flush();
  if (by.size == 0) return;
  const SlabUpdate u{update.rule,         update.part_scale, update.scale, update.finish, by.size,
                     by.on_device.data(), gradients,         slab,         not_finite};
  auto* const found = staging_.Space<double>(by.size);
  StartKernel(FindRowSquares, BlocksFor(by.size), kThreadsABlock, stream_, u, found);
  staging_.FetchLater(found, squares.size_bytes(), squares.data());
}

void CudaRowSlabs::Scatter(Write write, SlabSlots& slots, const float* rows, float scale,
                           const RowSlab& slab) {
  staging_.Flush();
  const CudaSlabSlots& by = Loaded(slots);
  const uint32_t* const at = by.on_device.data();
  const auto put = [=] __device__(size_t i, uint32_t d) {
    const uint32_t slot = at[i];
    if ((slot & kOutside) != 0) return;
    const size_t dim = slab.dim;
    WriteTo(slab.data[size_t{slot} * (dim + slab.state_floats) + d], write,
            rows[i * dim + d] * scale);
  };
  LaunchForRowFloats(stream_, by.size, slab.dim, put);
}

void CudaRowSlabs::ReadRows(SlabSlots& slots, std::span<const SlabRows<float>> rows) {
  staging_.Flush();
  const CudaSlabSlots& by = Loaded(slots);
  const uint32_t* const at = by.on_device.data();
  for (const SlabRows<float>& of : rows) {
    const RowSlab slab = of.slab;
    const uint32_t floats = slab.row_floats();
    CHECK_EQ(of.rows.size(), by.size * floats);
    float* const packed = staging_.Space<float>(of.rows.size());
    LaunchForRowFloats(stream_, by.size, floats, [=] __device__(size_t i, uint32_t f) {
      packed[i * floats + f] = slab.data[size_t{at[i]} * floats + f];
    });
    staging_.FetchLater(packed, of.rows.size_bytes(), of.rows.data());
  }
}

void CudaRowSlabs::WriteRows(SlabSlots& slots, std::span<const SlabRows<const float>> rows) {
  CudaSlabSlots& by = Loaded(slots);
  const uint32_t* const at = by.on_device.data();
  std::vector<const float*> packed;
  for (const SlabRows<const float>& of : rows) {
    CHECK_EQ(of.rows.size(), by.size * of.slab.row_floats());
    float* const room = RoomFor(staging_, of.rows.size(), &by.PackedFor(of.slab.data));
    staging_.Upload(of.rows.data(), of.rows.size_bytes(), room);
    packed.push_back(room);
  }
  staging_.Flush();
  for (size_t t = 0; t < rows.size(); ++t) {
    const RowSlab slab = rows[t].slab;
    const uint32_t floats = slab.row_floats();
    const float* const from = packed[t];
    LaunchForRowFloats(stream_, by.size, floats, [=] __device__(size_t i, uint32_t f) {
      slab.data[size_t{at[i]} * floats + f] = from[i * floats + f];
    });
  }
}

}  // namespace hdps
