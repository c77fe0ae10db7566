// Rows that stay on a device: a slab of weights and optimizer state, and how they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/matrix.h"

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

// rows[i * dim ...] = the weights of slab row slots[i] for those i of first <= i < first + count
// that have one.
void GatherSlabRows(const RowSlab& slab, std::span<const uint32_t> slots, size_t first,
                    size_t count, float* rows);

// The weights of slab row slots[i] (+)= rows[i * dim ...] * scale, for those i that have one.
void ScatterSlabRows(Write write, std::span<const uint32_t> slots, const float* rows, float scale,
                     size_t first, size_t count, const RowSlab& slab);

}  // namespace hdps
