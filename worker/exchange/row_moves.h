// Rows from their places among others into one piece, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hdps {

// to[i] = from[positions[i]], rows of `floats`.
void GatherRows(std::span<const uint32_t> positions, size_t floats, const float* from, float* to);
// to[positions[i]] = from[i], rows of `floats`.
void ScatterRows(std::span<const uint32_t> positions, size_t floats, const float* from, float* to);

}  // namespace hdps
