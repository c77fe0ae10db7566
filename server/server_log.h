// What a server writes into its log of what it holds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "server/server_memory_limit.h"

namespace hdps {

struct CommandDone;
struct Job;

// Where every table lives and is updated, and what bounds this server's memory beside the rows.
void LogPlacement(const Job& job, uint32_t rank, size_t own_shards, size_t workers, int threads);
// The rows of a digest. `memory`: null where they have all of the machine's.
void LogRows(const CommandDone& done, const ServerMemoryLimit* memory);

}  // namespace hdps
