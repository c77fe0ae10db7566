// Compares the memory that a job's settings require with the limit of the process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/memory_limit.h"

namespace hdps {

struct Job;

// Memory that is needed whatever the data is.
struct MemoryPart {
  std::string what;  // Names the settings that scale it.
  uint64_t bytes = 0;
};

// Returns the least memory of one worker: its copy of the dense layers and their gradients, and
// with `kept_here` the rows that it keeps in host memory.
std::vector<MemoryPart> MemoryOfWorker(const Job& job, bool kept_here);

// Errors: kInvalidArgument if `who`, such as "worker", cannot have all parts together; it lists
// them with their bytes, the largest first, and the limit.
Status CheckMemory(const std::string& who, std::vector<MemoryPart> parts, const MemoryLimit& most);

}  // namespace hdps
