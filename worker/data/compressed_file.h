// Reads files that may be packed by gzip or zstd.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// A SequentialFile that also tells its position in the file on disk.
class UnpackedFile : public SequentialFile {
 public:
  virtual uint64_t packed_bytes_read() const = 0;
  // Is true if the bytes are those of the file itself, which can be read at any offset.
  virtual bool seekable() const = 0;
};

// Opens a file and unpacks it if its first bytes are those of gzip or zstd (several members or
// frames in a row are one file). Read gives kInvalidArgument, with the path, for packed bytes that
// are damaged or cut short, and for a file with the name of a packed one but other first bytes.
Result<std::unique_ptr<UnpackedFile>> OpenUnpacked(FileSystem& files, const std::string& path);

}  // namespace hdps
