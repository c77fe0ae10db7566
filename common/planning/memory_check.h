// The memory that the settings of a job alone take of a process, against its limit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/memory_limit.h"

namespace hdps {

struct Job;

// Bytes that are taken whatever the data is.
struct MemoryPart {
  std::string what;  // With the settings that scale it.
  uint64_t bytes = 0;
};

// The memory that one worker takes, at least: its copy of the dense layers and their gradients, and
// with `kept_here` the rows it keeps in the host's memory.
std::vector<MemoryPart> MemoryOfWorker(const Job& job, bool kept_here);

// kInvalidArgument where `who`, such as "worker", cannot have all parts: it names each with its
// bytes, the largest first, and the limit.
Status CheckMemory(const std::string& who, std::vector<MemoryPart> parts, const MemoryLimit& most);

}  // namespace hdps
