// Logs what a server holds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "server/server_memory_limit.h"

namespace hdps {

struct Command;
struct CommandDone;
struct Job;

// Logs where each table lives and is updated, and the limits of this server's memory beside the
// rows.
void LogPlacement(const Job& job, uint32_t rank, size_t own_shards, size_t workers, int threads);
// Logs how a command has ended.
void LogEnd(const Command& command, const CommandDone& done);
// Logs the rows of a digest. `memory` is null if there is no limit.
void LogRows(const CommandDone& done, const ServerMemoryLimit* memory);

}  // namespace hdps
