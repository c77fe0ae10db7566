// An optional interface of sequential files: reads at any offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/status.h"

namespace hdps {

// Implemented by a SequentialFile that can be read anywhere; find it by dynamic_cast. A pipe, for
// example, cannot. The position of sequential reads does not change.
class SeekableFile {
 public:
  virtual ~SeekableFile() = default;
  // Reads up to buffer.size() bytes at `offset`; returns 0 past the end.
  virtual Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> buffer) = 0;
  // Hints that these bytes will be read soon, so a slow disk may begin to fetch them.
  virtual void WillRead(uint64_t offset, size_t bytes) = 0;
};

}  // namespace hdps
