// Limits what one server takes of its machine's memory, with a disk behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "common/net/peer_limits.h"
#include "common/planning/memory_check.h"
#include "common/platform/file_system.h"
#include "embedding/disk/disk_store.h"
#include "embedding/shard_memory.h"

namespace hdps {

struct Job;

struct MemoryLimitOptions {
  std::string spill_folder;  // Used if the job names none.
  uint32_t rank = 0;         // Rank of the server.
  std::string host;          // Host name and process number, for messages.
  size_t own_shards = 0, num_workers = 0;
  bool own_process = false;    // All memory of the process is this server's.
  uint64_t expected_rows = 0;  // Rows of each sparse table in all; 0: as many as there is room for.
};

// The memory of a server in bytes, as predicted before the first row is made.
struct MemoryPlan {
  uint64_t process = 0;  // The program and its libraries, as they are now.
  // Workers' requests: keys, rows and gradients of the steps in flight; with
  // train.delay_compensation also the rows as they were pulled.
  uint64_t requests = 0;
  uint64_t dense = 0;     // Dense layers, with their state.
  uint64_t sketches = 0;  // Sketches of the policies.
  uint64_t disk = 0;      // Rows being written to disk, and the index of their blocks.
  uint64_t copies = 0;    // Under a limit: rows that a save of changes copies.
  uint64_t spilled = 0;   // Index of the rows on disk, if there are more rows than fit in memory.
  uint64_t rows = 0;      // Rows with their index; under a limit, what it leaves them.
  uint64_t total() const { return others() + rows; }
  uint64_t others() const {
    return process + requests + dense + sketches + disk + copies + spilled;
  }
  std::string Text() const;  // "process 24 MiB + requests ... = 1.00 GiB"
};
// Returns how many bytes of rows a save may copy at one server. Under a memory limit rows that need
// more are kept on disk (RowsAtSave).
uint64_t CopyBytes(const Job& job);
MemoryPlan PlanMemory(const Job& job, const MemoryLimitOptions& options, uint64_t process_bytes);

// Returns the memory that the job's settings demand of a server with `own_shards` shards, at least.
std::vector<MemoryPart> MemoryOfServers(const Job& job, size_t own_shards);

// Returns why the limit cannot be kept, and which limit or how many servers would do; empty if it
// can.
std::string WhyLimitIsTooSmall(const Job& job, const MemoryLimitOptions& options,
                               uint64_t process_bytes);

// Limits the received data that waits at a server to half of the job's limit, if it has one. A
// limit without room for twice a step's requests is refused elsewhere. The data is part of the
// measured memory beside the rows, so rows make room for it.
void HoldWithinLimit(const Job& job, PeerLimits* limits);

// Returns the largest number of bytes that were ever in memory.
uint64_t PeakResidentBytes(FileSystem& files);

// The memory limit of a job on one server, and its disk.
//
// The rows get what everything else leaves of the limit. In a process of its own, "everything else"
// is measured: the process's memory according to the system, less the rows. Otherwise it is
// planned.
class ServerMemoryLimit {
 public:
  // Logs the plan. Returns null if the job sets no limit. kInvalidArgument if the process cannot
  // have what the settings demand (CheckMemory), if the limit leaves no room for rows, or for the
  // index of those expected on disk, or if the folder cannot be used.
  static Result<std::unique_ptr<ServerMemoryLimit>> Make(const Job& job,
                                                         const MemoryLimitOptions& options,
                                                         FileSystem& files);

  MemoryBudget& budget() { return *budget_; }
  DiskStore& disk() const { return *disk_; }
  // Limit of the copies that a save makes, which the plan has counted.
  uint64_t copy_bytes() const { return CopyBytes(*job_); }

  // Returns what the disk is waiting for, as text; empty: nothing. May be called from any thread.
  std::string trouble() const HDPS_EXCLUDES(trouble_mutex_);

  // Logs a warning if the limit cannot be kept with `rows` rows, of all tables together, that are
  // about to be loaded. Training may go on, as it did when they were saved.
  void WarnIfTooSmallFor(uint64_t rows) const;

 private:
  ServerMemoryLimit(const Job& job, const MemoryLimitOptions& options, uint64_t process_bytes);

  const std::shared_ptr<const Job> job_;
  const MemoryLimitOptions options_;
  const uint64_t process_bytes_;
  std::unique_ptr<FileLock>
      folder_lock_;  // Lock of the folder of disk_; declared before it, so it is released after it.
  mutable Mutex trouble_mutex_;
  std::string trouble_ HDPS_GUARDED_BY(trouble_mutex_);
  std::unique_ptr<DiskStore> disk_;
  std::unique_ptr<MemoryBudget> budget_;
};

}  // namespace hdps
