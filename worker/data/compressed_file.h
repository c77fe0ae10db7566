// Files as they were before gzip or zstd packed them.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// A SequentialFile that also tells how far it is in the file as it lies on the disk.
class UnpackedFile : public SequentialFile {
 public:
  virtual uint64_t packed_bytes_read() const = 0;
  // Whether its bytes are those of the file, and that can be read anywhere.
  virtual bool seekable() const = 0;
};

// Tells by the first bytes whether the file is gzip, zstd (several members or frames one behind the
// other are one file) or neither, which is given as it is. Read gives kInvalidArgument, with the
// path, for packed bytes that are damaged or cut short, and for a file that has the name but not
// the first bytes of a packed one.
Result<std::unique_ptr<UnpackedFile>> OpenUnpacked(FileSystem& files, const std::string& path);

}  // namespace hdps
