// The door to memory that two processes of one machine see: made by one, found by the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/status.h"

namespace hdps {

// Where another process of this machine finds a SharedMemory: it names nothing that outlives both.
struct SharedPlace {
  uint64_t pid = 0;
  uint64_t fd = 0;
  uint64_t bytes = 0;
};

// A mapping of memory that has no name in any file system. It is gone when the last process that
// mapped it has unmapped it or died.
//
// Invariant: `bytes()` bytes stay readable at data() as long as this lives, whatever the other
// process does: the memory is sealed against shrinking.
class SharedMemory {
 public:
  // Zeroes, none of which takes memory before Commit(). kIoError when the system gives none.
  static Result<std::unique_ptr<SharedMemory>> Create(size_t bytes);
  // Maps what another process of the same user made: the first `writable_bytes` for writing, the
  // rest for reading. kInvalidArgument when what is at `place` is anything else.
  static Result<std::unique_ptr<SharedMemory>> Open(const SharedPlace& place,
                                                    size_t writable_bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() { return data_; }
  size_t bytes() const { return bytes_; }
  SharedPlace place() const;  // Of one that was created.
  // Takes memory for the range now, so that touching it later cannot fail. Requires: created.
  // False when the machine has none to give.
  bool Commit(size_t offset, size_t bytes);

 private:
  SharedMemory(int fd, std::byte* data, size_t bytes) : fd_(fd), data_(data), bytes_(bytes) {}

  const int fd_;  // -1 once opened: the mapping is enough.
  std::byte* const data_;
  const size_t bytes_;
};

}  // namespace hdps
