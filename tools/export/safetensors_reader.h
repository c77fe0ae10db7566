// Reads a safetensors file, of hdps or of another program, and believes nothing that it says of
// itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/platform/seekable_file.h"
#include "tools/export/safetensors_writer.h"

namespace hdps {

// Invariant: every tensor lies within the file, has as many bytes as its shape and numbers say, and
// tensors have neither overlaps nor holes.
class SafetensorsFile {
 public:
  struct Entry {
    SafeTensor tensor;
    uint64_t begin = 0, bytes = 0;  // In the file.
  };

  // Reads and checks the header. Errors: kInvalidArgument says what is wrong with the file.
  static Result<std::unique_ptr<SafetensorsFile>> Open(FileSystem& files, const std::string& path);

  const std::string& path() const { return path_; }
  // In the order of their bytes. A tensor may have numbers that SafeTensor::dtype does not list.
  const std::vector<Entry>& entries() const { return entries_; }
  // Reads the bytes of a tensor from `offset` on. Requires: there are as many.
  Status Read(const Entry& entry, uint64_t offset, std::span<std::byte> bytes) const;

 private:
  explicit SafetensorsFile(std::string path) : path_(std::move(path)) {}
  // Parses the header's text. `data_bytes` follow it.
  Status Parse(const std::string& header, uint64_t data_bytes);
  Status Wrong(const std::string& what) const;

  const std::string path_;
  std::unique_ptr<SequentialFile> file_;
  SeekableFile* seekable_ = nullptr;  // The same file.
  std::vector<Entry> entries_;
};

}  // namespace hdps
