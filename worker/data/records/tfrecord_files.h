// Reads the records of TFRecord files.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "common/platform/file_system.h"
#include "worker/data/records/record_files.h"

namespace hdps {

// Makes the opener of TFRecord files: plain, or packed by gzip, zlib or zstd. A line is the bytes
// of a record. kInvalidArgument from Read() names the record whose length or contents do not have
// their checksum, or that is cut off.
std::shared_ptr<RecordFiles> NewTfrecordFiles();

// kInvalidArgument, with the mend, in a build that reads no records of tf.train.Example.
Status ExamplesAreRead();

// Returns true if these are the first bytes of a TFRecord file, kPackingBytes or more. False, too,
// in a build that reads no TFRecord files.
bool IsTfrecordFront(std::span<const std::byte> front);
// Returns true if the file, unpacked, begins as a TFRecord file does. False, too, for one that
// cannot be read, for a pipe, and in a build that reads no TFRecord files.
bool IsTfrecord(FileSystem& files, const std::string& path);

}  // namespace hdps
