// Tells what the system counts of this process.
#pragma once

#include <cstdint>

#include "common/platform/file_system.h"

namespace hdps {

// What cannot be read is 0.
struct ProcessUsage {
  int64_t cpu_ns = 0;             // Processor time, user and system.
  uint64_t resident_bytes = 0;    // Memory in RAM.
  uint64_t open_fds = 0;          // Open files and connections, without the one that counts them.
  double start_unix_seconds = 0;  // When the process started, in seconds since 1970.
};

// Returns the bytes of this process that are in memory now; 0 if the system does not tell.
uint64_t ResidentBytes(FileSystem& files);

// Reads /proc/self and /proc/stat through `files`, and asks the system.
ProcessUsage ReadProcessUsage(FileSystem& files);

}  // namespace hdps
