// Memory in huge pages, where the system has them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "common/platform/memory_full.h"

namespace hdps {

struct FreePages {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
// Not initialized.
using PageBlock = std::unique_ptr<std::byte[], FreePages>;

// Returns memory that is used all over, so that with pages of 4 KiB nearly each access would cost a
// walk through the page tables. It begins with a cache line and, if `bytes` are whole huge pages,
// consists of those. Throws MemoryFull. Requires: whole cache lines.
inline PageBlock NewPageBlock(size_t bytes) {
  constexpr size_t kCacheLine = 64, kHugePage = size_t{2} << 20;
  const size_t alignment = bytes % kHugePage == 0 ? kHugePage : kCacheLine;
  void* const block = std::aligned_alloc(alignment, bytes);
  if (block == nullptr) throw MemoryFull(bytes);
  // The kernel may ignore the request.
  if (alignment == kHugePage) (void)madvise(block, bytes, MADV_HUGEPAGE);
  return PageBlock(static_cast<std::byte*>(block));
}

}  // namespace hdps
