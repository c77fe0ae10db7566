// Memory that two processes of one machine map: created by one, opened by the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/status.h"

namespace hdps {

// The place at which another process of this machine finds a SharedMemory. It leaves nothing behind
// when both processes are gone.
struct SharedPlace {
  uint64_t pid = 0;
  uint64_t fd = 0;
  uint64_t bytes = 0;
};

// A mapping of memory that has no name in any file system. The memory is freed when the last
// process that mapped it has unmapped it or died.
//
// Invariant: `bytes()` bytes stay readable at data() as long as this object lives, whatever the
// other process does, because the memory is sealed against shrinking (F_SEAL_SHRINK).
class SharedMemory {
 public:
  // Creates zeroed memory, none of which is committed before Commit(). Errors: kIoError if the
  // system has none to give.
  static Result<std::unique_ptr<SharedMemory>> Create(size_t bytes);
  // Maps memory that another process of the same user created: the first `writable_bytes` for
  // writing, the rest for reading. Errors: kInvalidArgument if `place` holds anything else.
  static Result<std::unique_ptr<SharedMemory>> Open(const SharedPlace& place,
                                                    size_t writable_bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() { return data_; }
  size_t bytes() const { return bytes_; }
  SharedPlace place() const;  // Requires: Create() made this object.
  // Commits memory for the range, so that touching it later cannot fail. Requires: Create() made
  // this object. Returns false if the machine has no memory to give.
  bool Commit(size_t offset, size_t bytes);

 private:
  SharedMemory(int fd, std::byte* data, size_t bytes) : fd_(fd), data_(data), bytes_(bytes) {}

  const int fd_;  // -1 after Open(): the mapping is enough.
  std::byte* const data_;
  const size_t bytes_;
};

}  // namespace hdps
