// Optional interfaces of sequential files: reads at any offset, and bytes that are read as memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"

namespace hdps {

class FileSystem;

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

// The bytes of a file. Processes that map one file share its memory.
//
// Invariant: bytes() stay as long as this object lives, also after the file was removed. Requires:
// nobody shortens or changes the file meanwhile.
class MappedFile {
 public:
  virtual ~MappedFile() = default;
  virtual std::span<const std::byte> bytes() const = 0;
  // Gives the memory of all bytes back; what is read later comes from the file again.
  virtual void Drop() {}
};

// Implemented by a SequentialFile that can be mapped; find it by dynamic_cast.
class MappableFile {
 public:
  virtual ~MappableFile() = default;
  // Bytes are read in no order, so nothing is read ahead.
  virtual Result<std::unique_ptr<MappedFile>> Map() = 0;
};

// Maps a file, or reads it into memory where the file system cannot map. Errors are those of
// opening and reading.
Result<std::unique_ptr<MappedFile>> MapFile(FileSystem& files, const std::string& path);

}  // namespace hdps
