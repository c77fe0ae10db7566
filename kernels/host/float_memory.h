// Memory for many floats that are accessed at random.
#pragma once

#include <cstddef>
#include <memory>

namespace hdps {

struct FreeFloats {
  void operator()(float* data) const;
};
using FloatMemory = std::unique_ptr<float[], FreeFloats>;

// Returns `floats` uninitialized floats that begin at a cache line, so that a row of a tile spans
// as few lines as possible. Large blocks ask for huge pages. Throws MemoryFull if there is no
// memory.
FloatMemory AllocateFloats(size_t floats);

}  // namespace hdps
