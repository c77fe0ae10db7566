// Combines and copies values of collectives in GPU memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/collective/collective.h"

namespace hdps {

// Errors are CUDA's error numbers; 0: none. A build without CUDA has no LaunchCombine, and copies
// fail.

// Combines like RankTransport::Combine, with all memory on the device. `stream` is a cudaStream_t.
int LaunchCombine(Reduction reduction, const std::byte* parts, size_t stride, uint32_t ranks,
                  size_t count, std::byte* result, void* stream);
// Copies bytes and returns when it is done; either side may be device memory.
int CopyToOrFromDevice(void* to, const void* from, size_t size);
const char* DeviceErrorText(int error);

}  // namespace hdps
