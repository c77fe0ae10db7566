// The scratch memory of products on a device, for estimates of its memory.
#pragma once

#include <cstddef>

namespace hdps {

// Bytes that an algorithm may use for partial sums. Allocated once for all products of a process,
// when one first needs them.
inline constexpr size_t kProductWorkspaceBytes = size_t{32} << 20;

}  // namespace hdps
