// Moves rows from their places into one piece of a section, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/dtype.h"
#include "kernels/vector_width.h"

namespace hdps {

// Format of a row in a section. Numbers are rounded to nearest when written; `width` does not
// change the result.
struct RowFormat {
  DType format = DType::kFp32;
  size_t floats = 0;  // Floats per row.
};

// to[i] = from[positions[i]]
void GatherRows(VectorWidth width, const RowFormat& row, std::span<const uint32_t> positions,
                const float* from, std::byte* to);
// to[positions[i]] = from[i]
void ScatterRows(VectorWidth width, const RowFormat& row, std::span<const uint32_t> positions,
                 const std::byte* from, float* to);

}  // namespace hdps
