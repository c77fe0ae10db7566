// Moves rows from their places into one piece of a section, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/dtype.h"
#include "common/platform/executor.h"
#include "kernels/vector_width.h"

namespace hdps {

// The vector width and the threads that move rows. Neither changes the result.
struct RowMovers {
  VectorWidth width;
  Executor* executor =
      nullptr;  // Shares long lists among its threads; null for the caller's alone.
};

// Format of a row in a section. Numbers are rounded to nearest when written.
struct RowFormat {
  DType format = DType::kFp32;
  size_t floats = 0;  // Floats per row.
  float scale = 1;    // Factor of numbers that are written in 16 bits.
};

// to[i] = from[positions[i]]
void GatherRows(const RowMovers& by, const RowFormat& row, std::span<const uint32_t> positions,
                const float* from, std::byte* to);
// to[positions[i]] = from[i]; no position stands twice.
void ScatterRows(const RowMovers& by, const RowFormat& row, std::span<const uint32_t> positions,
                 const std::byte* from, float* to);

}  // namespace hdps
