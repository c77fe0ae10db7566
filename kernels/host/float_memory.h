// Memory for many floats that are touched in no order.
#pragma once

#include <cstddef>
#include <memory>

namespace hdps {

struct FreeFloats {
  void operator()(float* data) const;
};
using FloatMemory = std::unique_ptr<float[], FreeFloats>;

// `floats` floats holding anything, from the start of a cache line on: a row of a tile is then as
// few lines as it can be. What is large is asked for in huge pages. MemoryFull
// where they cannot be had.
FloatMemory AllocateFloats(size_t floats);

}  // namespace hdps
