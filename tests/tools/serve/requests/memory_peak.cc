// Replaces operator new; the standard library's other forms of it call these.
#include "tests/tools/serve/requests/memory_peak.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HDPS_COUNTS_MEMORY 0
#else
#define HDPS_COUNTS_MEMORY 1
#endif

namespace hdps {
namespace {

std::atomic<size_t> held = 0, peak = 0, begin = 0;

}  // namespace

bool CountsMemory() { return HDPS_COUNTS_MEMORY != 0; }
void BeginMemoryPeak() {
  begin = held.load();
  peak = held.load();
}
size_t MemoryPeak() { return peak - begin; }

}  // namespace hdps

#if HDPS_COUNTS_MEMORY
namespace {

void* Counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  const size_t now = hdps::held += malloc_usable_size(memory);
  size_t most = hdps::peak;
  while (now > most && !hdps::peak.compare_exchange_weak(most, now)) {
  }
  return memory;
}
void Free(void* memory) {
  hdps::held -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(size_t bytes) { return Counted(std::malloc(bytes)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<size_t>(alignment);
  return Counted(std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit));
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { Free(memory); }
#endif
