// The memory limit of a process and its source.
#pragma once

#include <cstdint>

namespace hdps {

class FileSystem;

struct MemoryLimit {
  uint64_t bytes = 0;
  const char* by = "";  // The source, such as "ulimit -v".
};

// Returns the smallest of the machine's memory with swap and the limits of the process. Asks the
// system each time, and takes no memory.
MemoryLimit LimitOfProcess();
// In bytes.
uint64_t SwapOfMachine();

// Returns the smallest of those and of the limits of the process' control groups.
MemoryLimit MostMemory(FileSystem& files);

}  // namespace hdps
