// What products on a device take beside their matrices, for whoever reckons with its memory.
#pragma once

#include <cstddef>

namespace hdps {

// Bytes that an algorithm may use for sums that are cut, once for all products of a process; they
// are taken when one first asks for them.
inline constexpr size_t kProductWorkspaceBytes = size_t{32} << 20;

}  // namespace hdps
