// Gathers and updates rows by slot, a few rows ahead of the memory.
#include "kernels/host/row_slab.h"

#include <algorithm>
#include <cstring>

#include "kernels/host/optimizer_loops.h"
#include "kernels/host/slab_loop.h"

namespace hdps {
void GatherSlabRows(const RowSlab& slab, std::span<const uint32_t> slots, const float* outside,
                    size_t first, size_t count, float* rows) {
  const size_t dim = slab.dim, end = first + count;
  for (size_t i = first; i < std::min(end, first + kSlabRowsAhead); ++i)
    PrefetchSlabRow(slab, slots[i], dim);
  for (size_t i = first; i < end; ++i) {
    if (i + kSlabRowsAhead < end) PrefetchSlabRow(slab, slots[i + kSlabRowsAhead], dim);
    const bool inside = slots[i] != kNotInSlab;
    if (!inside && rows == outside) continue;
    const float* from = inside ? slab.Row(slots[i]) : outside + i * dim;
    std::memcpy(rows + i * dim, from, dim * sizeof(float));
  }
}

bool UpdateSlabRows(const RowUpdate& update, std::span<const uint32_t> slots,
                    const float* gradients, size_t first, size_t count, const RowSlab& slab) {
  if (update.rule.kind == OptimizerKind::kOwn) {
    return LoopsOf(update.rule).update_slab(update, slots, gradients, first, count, slab);
  }
  bool finite = true;
  WithRowOptimizer(update.rule.kind, [&](auto rule) {
    finite = UpdateSlabRowsBy<decltype(rule)>(update, slots, gradients, first, count, slab);
  });
  return finite;
}

}  // namespace hdps
