// Hands blocks of rows to the threads of an executor.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/platform/executor.h"

namespace hdps {

// Floats in a block of work for one thread: large against the cost of handing it out (some
// microseconds), small against the cache.
inline constexpr size_t kBlockFloats = 16384;

// Calls body(index) for 0 <= index < count.
template <typename Body>
void ForEachIndex(Executor& executor, size_t count, const Body& body) {
  if (count == 1) {
    body(0);
  } else if (count > 1) {
    executor.ParallelFor(count, body);
  }
}

// Calls body(first, count) for blocks of rows.
template <typename Body>
void ForRowBlocks(Executor& executor, size_t rows, size_t floats_a_row, const Body& body) {
  const size_t block = std::max<size_t>(1, kBlockFloats / std::max<size_t>(1, floats_a_row));
  ForEachIndex(executor, (rows + block - 1) / block,
               [&](size_t index) { body(index * block, std::min(block, rows - index * block)); });
}

}  // namespace hdps
