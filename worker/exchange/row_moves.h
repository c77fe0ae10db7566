// Rows from their places into one piece of a section, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/dtype.h"
#include "common/platform/executor.h"
#include "kernels/vector_width.h"

namespace hdps {

// Who moves rows; neither changes a bit.
struct RowMovers {
  VectorWidth width;
  Executor* executor = nullptr;  // Its threads share what takes long; null: the caller's does all.
};

// Numbers of a section: `format` is how they travel. Rounded to the nearest on the way in.
struct RowFormat {
  DType format = DType::kFp32;
  size_t floats = 0;  // Of a row.
};

// to[i] = from[positions[i]]
void GatherRows(const RowMovers& by, const RowFormat& row, std::span<const uint32_t> positions,
                const float* from, std::byte* to);
// to[positions[i]] = from[i]; no position stands twice.
void ScatterRows(const RowMovers& by, const RowFormat& row, std::span<const uint32_t> positions,
                 const std::byte* from, float* to);

}  // namespace hdps
