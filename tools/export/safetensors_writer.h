// Writes a safetensors file: a header of JSON, then the bytes of its tensors without holes.
// Source of the form: the README of huggingface/safetensors, "Format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// A tensor of a file: little-endian numbers, the last dimension fastest.
struct SafeTensor {
  std::string name;
  std::string dtype;            // "I64", "F32", "F16", "BF16" or "U8".
  std::vector<uint64_t> shape;  // Empty for a single number.
  uint64_t bytes() const;
};

// Texts of the header's __metadata__ by their names.
using SafeMetadata = std::map<std::string, std::string>;

// Invariant: the file has the bytes that were appended, tensor after tensor in the order of
// Create(), and its data begin at a multiple of 8.
class SafetensorsWriter {
 public:
  // Errors: kInvalidArgument if two tensors have one name, and if the header would be longer than
  // 100 MB, which readers refuse.
  static Result<std::unique_ptr<SafetensorsWriter>> Create(FileSystem& files,
                                                           const std::string& path,
                                                           std::vector<SafeTensor> tensors,
                                                           const SafeMetadata& metadata);
  // Appends the next bytes of the tensors; they may end anywhere.
  Status Append(std::span<const std::byte> bytes);
  // Makes the file survive a crash of the machine. Requires: the bytes of all tensors were
  // appended.
  Status Close();

 private:
  SafetensorsWriter(std::unique_ptr<WritableFile> file, uint64_t bytes)
      : file_(std::move(file)), bytes_left_(bytes) {}

  std::unique_ptr<WritableFile> file_;
  uint64_t bytes_left_;
};

// Writes a file whose tensors are in memory: contents[i] has the bytes of tensors[i].
Status WriteSafetensors(FileSystem& files, const std::string& path,
                        const std::vector<SafeTensor>& tensors,
                        const std::vector<std::span<const std::byte>>& contents,
                        const SafeMetadata& metadata);

}  // namespace hdps
