// Runs the plain loops of row_slab.h over blocks of rows.
#include "kernels/host/cpu_row_slabs.h"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>

#include "kernels/host/row_blocks.h"
#include "kernels/host/slab_update.h"

namespace hdps {
namespace {

class CpuSlabSlots : public SlabSlots {
 public:
  std::span<const uint32_t> slots;
};

std::span<const uint32_t> SlotsOf(const SlabSlots& slots) {
  return static_cast<const CpuSlabSlots&>(slots).slots;
}

// Calls copy(row of the slab, row outside, floats) for whole rows.
template <typename Float, typename Copy>
void ForWholeRows(Executor& executor, const SlabSlots& slots, std::span<const SlabRows<Float>> rows,
                  const Copy& copy) {
  const std::span<const uint32_t> at = SlotsOf(slots);
  for (const SlabRows<Float>& of : rows) {
    const size_t floats = of.slab.row_floats();
    CHECK_EQ(of.rows.size(), at.size() * floats);
    ForRowBlocks(executor, at.size(), floats, [&](size_t first, size_t count) {
      for (size_t i = first; i < first + count; ++i) {
        copy(of.slab.Row(at[i]), of.rows.data() + i * floats, floats);
      }
    });
  }
}

}  // namespace

void CpuRowSlabs::Load(std::span<const uint32_t> slots, std::unique_ptr<SlabSlots>* loaded) {
  if (*loaded == nullptr) *loaded = std::make_unique<CpuSlabSlots>();
  static_cast<CpuSlabSlots&>(**loaded).slots = slots;
}

void CpuRowSlabs::CopyOutside(const SlabSlots& slots, size_t dim, const float* from, float* to) {
  if (from == to) return;
  const std::span<const uint32_t> at = SlotsOf(slots);
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] == kNotInSlab) std::copy_n(from + i * dim, dim, to + i * dim);
  }
}

void CpuRowSlabs::Gather(const SlabSlots& slots, const RowSlab& slab, float* rows) {
  const std::span<const uint32_t> at = SlotsOf(slots);
  ForRowBlocks(executor_, at.size(), slab.dim,
               [&](size_t first, size_t count) { GatherSlabRows(slab, at, first, count, rows); });
}

bool CpuRowSlabs::UpdateSlots(const RowUpdate& update, std::span<const uint32_t> slots,
                              const float* gradients, const RowSlab& slab) {
  std::atomic<bool> finite = true;
  ForRowBlocks(executor_, slots.size(), slab.row_floats(), [&](size_t first, size_t count) {
    if (!UpdateSlabRows(update, slots, gradients, first, count, slab)) finite = false;
  });
  return finite;
}

void CpuRowSlabs::Update(const RowUpdate& update, const SlabSlots& slots, const float* gradients,
                         const RowSlab& slab, float* not_finite) {
  if (!UpdateSlots(update, SlotsOf(slots), gradients, slab)) *not_finite = 1;
}

void CpuRowSlabs::FindSquares(const RowUpdate& update, const SlabSlots& slots,
                              const float* gradients, const RowSlab& slab,
                              std::span<double> squares, float* not_finite) {
  const std::span<const uint32_t> at = SlotsOf(slots);
  CHECK_EQ(squares.size(), at.size());
  std::atomic<bool> finite = true;
  ForRowBlocks(executor_, at.size(), slab.dim, [&](size_t first, size_t count) {
    if (!SlabRowSquares(update, at, gradients, first, count, slab, squares.data())) finite = false;
  });
  if (!finite) *not_finite = 1;
}

void CpuRowSlabs::Scatter(Write write, const SlabSlots& slots, const float* rows, float scale,
                          const RowSlab& slab) {
  const std::span<const uint32_t> at = SlotsOf(slots);
  ForRowBlocks(executor_, at.size(), slab.dim, [&](size_t first, size_t count) {
    ScatterSlabRows(write, at, rows, scale, first, count, slab);
  });
}

void CpuRowSlabs::UpdateFirst(const RowUpdate& update, size_t count, const float* gradients,
                              const RowSlab& slab) {
  for (size_t slot = first_slots_.size(); slot < count; ++slot) {
    first_slots_.push_back(static_cast<uint32_t>(slot));
  }
  UpdateSlots(update, std::span(first_slots_).first(count), gradients, slab);
}

void CpuRowSlabs::ReadRows(const SlabSlots& slots, std::span<const SlabRows<float>> rows) {
  ForWholeRows(executor_, slots, rows, [](const float* in_slab, float* outside, size_t floats) {
    std::copy_n(in_slab, floats, outside);
  });
}

void CpuRowSlabs::WriteRows(const SlabSlots& slots, std::span<const SlabRows<const float>> rows) {
  ForWholeRows(executor_, slots, rows, [](float* in_slab, const float* outside, size_t floats) {
    std::copy_n(outside, floats, in_slab);
  });
}

}  // namespace hdps
