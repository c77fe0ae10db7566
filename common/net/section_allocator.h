// Where the bytes of sections are best made, so that sending them copies nothing.
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
  // Fresh bytes of a section for `to`, aligned to 64, for the caller to fill through `*bytes`
  // before sharing. May be sent to anybody, or not at all; for `to` it goes without a copy where it
  // can.
  virtual Buffer Make(PeerId to, size_t size, std::span<std::byte>* bytes) = 0;
};

// For peers of one process: the memory of long sections is kept for those that follow, since the
// system would take it back and clear it page by page for every message. Keeps a few of them.
// What it made may outlive it.
std::unique_ptr<SectionAllocator> NewKeptSections();

// From `source`, or from the process' own memory where there is none.
inline Buffer MakeSection(SectionAllocator* source, PeerId to, size_t size,
                          std::span<std::byte>* bytes) {
  return source != nullptr ? source->Make(to, size, bytes) : Buffer::Allocate(size, bytes);
}

}  // namespace hdps
