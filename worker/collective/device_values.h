// Values of collectives in the memory of a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker/collective/collective.h"

namespace hdps {

// Errors are those of CUDA as numbers, 0 for none. A build without CUDA has no launch, and copies
// fail.

// As RankTransport::Combine, all in device memory. `stream` is a cudaStream_t.
int LaunchCombine(Reduction reduction, const std::byte* parts, size_t stride, uint32_t ranks,
                  size_t count, std::byte* result, void* stream);
// Returns when it is done; either may be device memory.
int CopyToOrFromDevice(void* to, const void* from, size_t size);
const char* DeviceErrorText(int error);

}  // namespace hdps
