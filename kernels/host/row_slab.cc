// Gathers and updates rows by slot, a few rows ahead of the memory.
#include "kernels/host/row_slab.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/base/square_sum.h"
#include "kernels/host/optimizer_loops.h"
#include "kernels/host/slab_loop.h"

namespace hdps {

void GatherSlabRows(const RowSlab& slab, std::span<const uint32_t> slots, size_t first,
                    size_t count, float* rows) {
  const size_t dim = slab.dim, end = first + count;
  for (size_t i = first; i < std::min(end, first + kSlabRowsAhead); ++i)
    PrefetchSlabRow(slab, slots[i], dim);
  for (size_t i = first; i < end; ++i) {
    if (i + kSlabRowsAhead < end) PrefetchSlabRow(slab, slots[i + kSlabRowsAhead], dim);
    if (slots[i] == kNotInSlab) continue;
    std::memcpy(rows + i * dim, slab.Row(slots[i]), dim * sizeof(float));
  }
}

bool UpdateSlabRows(const RowUpdate& update, std::span<const uint32_t> slots,
                    const float* gradients, size_t first, size_t count, const RowSlab& slab) {
  if (update.rule.record->is_own()) {
    return LoopsOf(update.rule).update_slab(update, slots, gradients, first, count, slab);
  }
  bool finite = true;
  WithRowOptimizer(update.rule.record->kind, [&](auto rule) {
    finite = UpdateSlabRowsBy<decltype(rule)>(update, slots, gradients, first, count, slab);
  });
  return finite;
}

void ScatterSlabRows(Write write, std::span<const uint32_t> slots, const float* rows, float scale,
                     size_t first, size_t count, const RowSlab& slab) {
  for (size_t i = first; i < first + count; ++i) {
    if (slots[i] == kNotInSlab) continue;
    const float* const from = rows + i * slab.dim;
    float* const to = slab.Row(slots[i]);
    for (uint32_t d = 0; d < slab.dim; ++d) WriteTo(to[d], write, from[d] * scale);
  }
}

bool SlabRowSquares(const RowUpdate& update, std::span<const uint32_t> slots,
                    const float* gradients, size_t first, size_t count, const RowSlab& slab,
                    double* squares) {
  std::vector<float> finished(slab.dim);
  bool finite = true;
  for (size_t i = first; i < first + count; ++i) {
    squares[i] = 0;
    if (slots[i] == kNotInSlab) continue;
    finite &= FinishOneGradient(gradients + i * slab.dim, update, slab.Row(slots[i]), finished);
    squares[i] = SquaresOf(finished);
  }
  return finite;
}

}  // namespace hdps
