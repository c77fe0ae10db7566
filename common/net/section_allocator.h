// Allocates sections where they can be sent without a copy.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "common/base/buffer.h"
#include "common/base/ids.h"

namespace hdps {

// Any thread may call it.
class SectionAllocator {
 public:
  virtual ~SectionAllocator() = default;
  // Allocates a section to be sent to `to`, aligned to 64 bytes, for the caller to fill through
  // `*bytes` before sharing. It may also be sent to another peer, or not at all; only the way to
  // `to` can save the copy.
  virtual Buffer Make(PeerId to, size_t size, std::span<std::byte>* bytes) = 0;
};

// Returns an allocator for peers in one process. It keeps the memory of a few long sections for the
// ones that follow, because the system would otherwise reclaim and clear it page by page for every
// message. Its sections may outlive it.
std::unique_ptr<SectionAllocator> NewKeptSections();

// Allocates from `source`, or from ordinary memory if `source` is null.
inline Buffer MakeSection(SectionAllocator* source, PeerId to, size_t size,
                          std::span<std::byte>* bytes) {
  return source != nullptr ? source->Make(to, size, bytes) : Buffer::Allocate(size, bytes);
}

}  // namespace hdps
