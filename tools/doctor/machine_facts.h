// Gathers what a machine offers a job, as its kernel reports it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "common/platform/file_system.h"

namespace hdps {

// Bytes of one kind of memory or disk: those free, and all.
struct FreeSpace {
  uint64_t free = std::numeric_limits<uint64_t>::max();
  uint64_t total = std::numeric_limits<uint64_t>::max();
};

struct MachineFacts {
  // The control group's limit, if it is below the machine's memory.
  FreeSpace memory;
  FreeSpace shared_memory;  // /dev/shm; 0 of 0 if it does not exist.
  // The disks of --out and of the spill folder for rows beyond the memory limit.
  FreeSpace out, spill;
  double cores = 1;        // Limit of the control group, or all cores of the machine.
  double cores_there = 1;  // Cores of the machine.
  uint64_t open_files_max = std::numeric_limits<uint64_t>::max();
  uint64_t file_bytes_max = std::numeric_limits<uint64_t>::max();
  // Setting of transparent huge pages: always, madvise or never.
  std::string huge_pages = "always";
  bool clock_is_set = true;  // A time server keeps the wall clock.
  int64_t year = 2026;       // Year of the wall clock.
  bool wide_vectors = true;  // The CPU has at least AVX2.
  bool products_in_bf16 = true;
  std::string listen, scheduler;  // Addresses that were tried; empty: none.
  // The reasons why the machine cannot: write into --out or be the only run there; write into the
  // spill folder; listen at --listen; reach --scheduler; compute on a GPU. Empty where it can.
  std::string out_trouble, spill_trouble, listen_trouble, scheduler_trouble, gpu_trouble;
};

// Folders and addresses to check; an empty one is not checked.
struct FactsWanted {
  std::string out, spill, listen, scheduler;
  bool may_leave = false;
};
// Tries for `patience_ms` to reach `address`. Returns the reason why that failed, or nothing if a
// process accepts connections there.
std::string ReachError(const std::string& address, bool may_leave, int patience_ms);
// Gathers the facts. Leaves nothing on disk but the folder --out, if it did not exist.
MachineFacts GatherFacts(FileSystem& files, const FactsWanted& wanted);

}  // namespace hdps
