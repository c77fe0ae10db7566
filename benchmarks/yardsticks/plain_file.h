// Writes and reads a file in the simplest way.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// Returns the seconds to write `bytes` of incompressible data to a new file and sync it.
Result<double> SecondsToWrite(FileSystem& files, const std::string& path, uint64_t bytes);
// Returns the seconds to read the whole file.
Result<double> SecondsToRead(FileSystem& files, const std::string& path);
// Drops the file from the page cache, so that the next read comes from the disk.
void ForgetFile(const std::string& path);

}  // namespace hdps
