// Bytes onto the disk and back at their simplest.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// Seconds to write `bytes` that cannot be compressed into a new file and to have them on the disk.
Result<double> SecondsToWrite(FileSystem& files, const std::string& path, uint64_t bytes);
// Seconds to read the file from its beginning to its end.
Result<double> SecondsToRead(FileSystem& files, const std::string& path);
// Lets the system forget what it holds of the file in memory, so that the next read is the disk's.
void ForgetFile(const std::string& path);

}  // namespace hdps
