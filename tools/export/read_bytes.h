// Reads from any position of a file that was written before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/platform/seekable_file.h"

namespace hdps {

// Reads exactly these bytes. Errors: kIoError if the file at `path` has fewer.
inline Status ReadBytes(SequentialFile& file, const std::string& path, uint64_t offset,
                        std::span<std::byte> bytes) {
  auto* const seekable = dynamic_cast<SeekableFile*>(&file);
  if (seekable == nullptr) return {Code::kIoError, path + ": it cannot be read from any position"};
  while (!bytes.empty()) {
    HDPS_ASSIGN_OR_RETURN(const size_t got, seekable->ReadAt(offset, bytes));
    if (got == 0) return {Code::kIoError, path + ": it has become shorter"};
    offset += got;
    bytes = bytes.subspan(got);
  }
  return {};
}

}  // namespace hdps
