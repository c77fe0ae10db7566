// Rows that stay on a device: a slab of weights and optimizer state, and the plain loops over it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/job/table_spec.h"
#include "kernels/tasks/gradient_tasks.h"

namespace hdps {

// Stands for a row that is not in the slab.
inline constexpr uint32_t kNotInSlab = 0xffffffff;

// Rows [dim weights | state] one behind the other in the memory of one device; row s begins at
// data + s * row_floats(). A view owns nothing.
struct RowSlab {
  float* data = nullptr;
  uint32_t dim = 0;
  uint32_t state_floats = 0;

  uint32_t row_floats() const { return dim + state_floats; }
  float* Row(uint32_t slot) const { return data + size_t{slot} * row_floats(); }
};

// One update of rows, as a server would make it of one part: (gradient * part_scale) * scale is
// finished by the weights as they were, and goes into the rule; `step` as for UpdateRow of
// embedding/memory/optimizer.h. Not for optimizers of whole tensors.
struct RowUpdate {
  OptimizerSpec rule;
  int64_t step = 1;
  float part_scale = 1, scale = 1;
  GradientFinish finish = {};
};

// rows[i * dim ...] = the weights of slab row slots[i] for those i of first <= i < first + count
// that have one.
void GatherSlabRows(const RowSlab& slab, std::span<const uint32_t> slots, size_t first,
                    size_t count, float* rows);

// Applies the update to slab row slots[i] with gradients[i * dim ...] for those i that have one;
// the same bits as UpdateRow. No slot twice. False when a scaled gradient is not finite.
bool UpdateSlabRows(const RowUpdate& update, std::span<const uint32_t> slots,
                    const float* gradients, size_t first, size_t count, const RowSlab& slab);

// The weights of slab row slots[i] (+)= rows[i * dim ...] * scale, for those i that have one.
void ScatterSlabRows(Write write, std::span<const uint32_t> slots, const float* rows, float scale,
                     size_t first, size_t count, const RowSlab& slab);

// squares[i] = SquaresOf() the finished gradient of the row that i has, 0 where it has none.
// Likewise.
bool SlabRowSquares(const RowUpdate& update, std::span<const uint32_t> slots,
                    const float* gradients, size_t first, size_t count, const RowSlab& slab,
                    double* squares);

}  // namespace hdps
