// Updates of the rows of a slab by the rule of their table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/job/optimizers/optimizer_record.h"
#include "kernels/host/row_slab.h"
#include "kernels/tasks/gradient_tasks.h"

namespace hdps {

// One update of rows, as a server would make it of one part: (gradient * part_scale) * scale is
// finished by the weights as they were, and goes into the rule; `step` as for UpdateRow of
// embedding/memory/optimizer.h. Not for optimizers of whole tensors.
struct RowUpdate {
  OptimizerSpec rule;
  int64_t step = 1;
  float part_scale = 1, scale = 1;
  GradientFinish finish = {};
};

// Applies the update to slab row slots[i] with gradients[i * dim ...] for those i that have one;
// the same bits as UpdateRow. No slot twice. False when a scaled gradient is not finite.
bool UpdateSlabRows(const RowUpdate& update, std::span<const uint32_t> slots,
                    const float* gradients, size_t first, size_t count, const RowSlab& slab);

// squares[i] = SquaresOf() the finished gradient of the row that i has, 0 where it has none.
// Likewise.
bool SlabRowSquares(const RowUpdate& update, std::span<const uint32_t> slots,
                    const float* gradients, size_t first, size_t count, const RowSlab& slab,
                    double* squares);

}  // namespace hdps
