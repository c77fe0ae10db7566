// What some files can do beside being read in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/status.h"

namespace hdps {

// A SequentialFile that can be read anywhere is one of these too (dynamic_cast tells); a pipe, say,
// is none. Where it is in its order stays as it is.
class SeekableFile {
 public:
  virtual ~SeekableFile() = default;
  // Reads up to buffer.size() bytes from `offset` on; 0 behind the end.
  virtual Result<size_t> ReadAt(uint64_t offset, std::span<std::byte> buffer) = 0;
  // These bytes will be read soon: a slow disk may begin to bring them.
  virtual void WillRead(uint64_t offset, size_t bytes) = 0;
};

}  // namespace hdps
