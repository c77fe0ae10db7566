// Slabs: rows of weights and optimizer state that stay on a device, and how they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/matrix.h"

namespace hdps {

// Marks a row that is not in the slab.
inline constexpr uint32_t kNotInSlab = 0xffffffff;

// A view of rows [dim weights | state] in the memory of one device, without gaps; row s begins at
// data + s * row_floats(). Owns nothing.
struct RowSlab {
  float* data = nullptr;
  uint32_t dim = 0;
  uint32_t state_floats = 0;

  uint32_t row_floats() const { return dim + state_floats; }
  float* Row(uint32_t slot) const { return data + size_t{slot} * row_floats(); }
};

// Sets rows[i * dim ...] to the weights of slab row slots[i], for first <= i < first + count with a
// slot.
void GatherSlabRows(const RowSlab& slab, std::span<const uint32_t> slots, size_t first,
                    size_t count, float* rows);

// The weights of slab row slots[i] (+)= rows[i * dim ...] * scale, for those i with a slot.
void ScatterSlabRows(Write write, std::span<const uint32_t> slots, const float* rows, float scale,
                     size_t first, size_t count, const RowSlab& slab);

}  // namespace hdps
