// The most memory that a process may have, and who says so.
#pragma once

#include <cstdint>

namespace hdps {

class FileSystem;

struct MemoryLimit {
  uint64_t bytes = 0;
  const char* by = "";  // Such as "ulimit -v".
};

// The least of the machine's memory with swap and of the limits of the process. Asks the system
// each time, and takes no memory.
MemoryLimit LimitOfProcess();
// Bytes.
uint64_t SwapOfMachine();

// Likewise, or what the control group of the process leaves of it.
MemoryLimit MostMemory(FileSystem& files);

}  // namespace hdps
