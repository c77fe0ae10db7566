// What a machine has for a job, as its kernel says.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "common/platform/file_system.h"

namespace hdps {

// Bytes of one kind there are for use, and of how many.
struct Room {
  uint64_t free = std::numeric_limits<uint64_t>::max();
  uint64_t total = std::numeric_limits<uint64_t>::max();
};

struct MachineFacts {
  Room memory;             // The control group's limit, where it is less than the machine's memory.
  Room shared_memory;      // /dev/shm; 0 of 0: it is not there.
  Room out, spill;         // Of the disks of --out and of rows beyond the memory limit.
  double cores = 1;        // Of the control group, where it may use less than there are.
  double cores_there = 1;  // Of the machine.
  uint64_t open_files_max = std::numeric_limits<uint64_t>::max();
  uint64_t file_bytes_max = std::numeric_limits<uint64_t>::max();
  std::string huge_pages = "always";  // Of transparent ones: always, madvise or never.
  bool clock_is_set = true;           // The wall clock is kept by a time server.
  int64_t year = 2026;                // That it shows.
  bool wide_vectors = true;           // At least AVX2.
  bool products_in_bf16 = true;
  std::string listen, scheduler;  // The addresses that were tried; empty: none.
  // Why not, empty where it can: write into --out, or become the only run there; write into the
  // spill folder; listen at --listen; reach --scheduler; compute on a GPU.
  std::string out_trouble, spill_trouble, listen_trouble, scheduler_trouble, gpu_trouble;
};

// What is asked about; empty: not at all.
struct FactsWanted {
  std::string out, spill, listen, scheduler;
  bool may_leave = false;
};
// Why nobody can be reached at `address` within `patience_ms`; empty: somebody takes connections.
std::string WhyNotReached(const std::string& address, bool may_leave, int patience_ms);
// Leaves nothing behind but the folder --out, if that was not there.
MachineFacts GatherFacts(FileSystem& files, const FactsWanted& wanted);

}  // namespace hdps
