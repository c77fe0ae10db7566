// Reads files that may be packed by gzip, zstd or zlib.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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

enum class Packing : uint8_t { kNone, kGzip, kZstd, kZlib };
// Tells by the first bytes of a file, as far as it has so many, how it is packed.
inline constexpr size_t kPackingBytes = 12;
using TellPacking = Packing (*)(std::span<const std::byte> front);
// Knows the first bytes of gzip and zstd, and of zlib if that may be: two bytes, which many other
// files have as well.
Packing PackingOf(std::span<const std::byte> front, bool zlib);

// Opens a file and unpacks it if its first bytes are those of gzip or zstd, or as `tell` says
// (several members or frames in a row are one file). Read gives kInvalidArgument, with the path,
// for packed bytes that are damaged or cut short, and for a file with the name of a packed one but
// other first bytes. Without `tell` Parquet and TFRecord files are
// refused.
Result<std::unique_ptr<UnpackedFile>> OpenUnpacked(FileSystem& files, const std::string& path,
                                                   TellPacking tell = nullptr);

}  // namespace hdps
