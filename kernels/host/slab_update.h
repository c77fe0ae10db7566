// Updates the rows of a slab by their table's optimizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/job/optimizers/optimizer_record.h"
#include "kernels/host/row_slab.h"
#include "kernels/tasks/gradient_tasks.h"

namespace hdps {

// One update of rows, as a server would apply it to a single part: (gradient * part_scale) * scale
// is finished with the weights before the update and given to the rule; `step` as for UpdateRow in
// embedding/memory/optimizer.h. Not for optimizers of whole tensors.
struct RowUpdate {
  OptimizerSpec rule;
  int64_t step = 1;
  float part_scale = 1, scale = 1;
  GradientFinish finish = {};
};

// Updates slab row slots[i] with gradients[i * dim ...], for those i with a slot; gives the same
// bits as UpdateRow. No slot occurs twice. Returns false if a scaled gradient is not finite.
bool UpdateSlabRows(const RowUpdate& update, std::span<const uint32_t> slots,
                    const float* gradients, size_t first, size_t count, const RowSlab& slab);

// Sets squares[i] to SquaresOf() of the finished gradient of row i; 0 without a slot. Returns as
// above.
bool SlabRowSquares(const RowUpdate& update, std::span<const uint32_t> slots,
                    const float* gradients, size_t first, size_t count, const RowSlab& slab,
                    double* squares);

}  // namespace hdps
