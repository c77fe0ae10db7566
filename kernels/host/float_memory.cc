// Allocates aligned memory, and asks for huge pages.
#include "kernels/host/float_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "common/platform/memory_full.h"

namespace hdps {
namespace {

constexpr size_t kLineBytes = 64, kHugePageBytes = size_t{2} << 20;
constexpr size_t kHugeFrom = size_t{2} << 20;

}  // namespace

void FreeFloats::operator()(float* data) const { std::free(data); }

FloatMemory AllocateFloats(size_t floats) {
  const size_t wanted = std::max<size_t>(floats, 1) * sizeof(float);
  const size_t alignment = wanted < kHugeFrom ? kLineBytes : kHugePageBytes;
  const size_t bytes = (wanted + alignment - 1) / alignment * alignment;
  void* const data = std::aligned_alloc(alignment, bytes);
  if (data == nullptr) throw MemoryFull(bytes);
  if (alignment == kHugePageBytes) (void)madvise(data, bytes, MADV_HUGEPAGE);
  return FloatMemory(static_cast<float*>(data));
}

}  // namespace hdps
