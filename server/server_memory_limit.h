// What one server may take of its machine's memory, and the disk behind it.
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
  std::string spill_folder;  // Where the job names none.
  uint32_t rank = 0;         // Of the server.
  std::string host;          // For people: host name and process number.
  size_t own_shards = 0, num_workers = 0;
  bool own_process = false;    // All memory of the process is this server's.
  uint64_t expected_rows = 0;  // Of each sparse table in all; 0: as many as there is room for.
};

// Bytes of a server's memory, as they are foreseen before the first row comes.
struct MemoryPlan {
  uint64_t process = 0;   // The program and its libraries, as they are now.
  uint64_t requests = 0;  // Of the workers: keys, rows and gradients of the steps on their way.
  uint64_t dense = 0;     // Of the dense layers, with their state.
  uint64_t sketches = 0;  // Sketches of the policies.
  uint64_t disk = 0;      // Rows being written, and what finds their blocks.
  uint64_t spilled = 0;   // What finds the rows on disk, if there are more than there is room for.
  uint64_t rows = 0;      // With their index; under a limit, what it leaves them.
  uint64_t total() const { return others() + rows; }
  uint64_t others() const { return process + requests + dense + sketches + disk + spilled; }
  std::string Text() const;  // "process 24 MiB + requests ... = 1.00 GiB"
};
MemoryPlan PlanMemory(const Job& job, const MemoryLimitOptions& options, uint64_t process_bytes);

// The memory that the job's settings alone ask of servers with so many of its shards, at least.
std::vector<MemoryPart> MemoryOfServers(const Job& job, size_t own_shards);

// Where the limit cannot be kept: why, and which limit or how many servers would do. Empty: it can.
std::string WhyLimitIsTooSmall(const Job& job, const MemoryLimitOptions& options,
                               uint64_t process_bytes);

// Of what has arrived at a server and waits, half of the job's limit at most, where it has one: a
// limit is refused that has no room for twice what a step brings. It is part of what is measured
// beside the rows, which make room for it.
void HoldWithinLimit(const Job& job, PeerLimits* limits);

// Bytes of this process that are in memory now; 0 where the system does not tell.
uint64_t ResidentBytes(FileSystem& files);
// The most there ever were.
uint64_t PeakResidentBytes(FileSystem& files);

// The limit of a job on one server, and its disk.
//
// The rows get what everything else leaves of the limit. In a process of its own that is what the
// system says the process takes, less the rows; otherwise it is what the plan says.
class ServerMemoryLimit {
 public:
  // Null when the job sets no limit. Logs the plan. kInvalidArgument when the process cannot have
  // what the settings ask for (CheckMemory), when the limit leaves no room for rows, also for what
  // finds those expected on disk, or the folder cannot be used.
  static Result<std::unique_ptr<ServerMemoryLimit>> Make(const Job& job,
                                                         const MemoryLimitOptions& options,
                                                         FileSystem& files);

  MemoryBudget& budget() { return *budget_; }
  DiskStore& disk() const { return *disk_; }

  // What the disk is waiting for, for people; empty: nothing. From any thread.
  std::string trouble() const HDPS_EXCLUDES(trouble_mutex_);

  // Before `rows` rows are loaded into this server, of all its tables together: says in the log
  // when the limit cannot be kept with them. Training may go on, as it did when they were saved.
  void WarnIfTooSmallFor(uint64_t rows) const;

 private:
  ServerMemoryLimit(const Job& job, const MemoryLimitOptions& options, uint64_t process_bytes);

  const std::shared_ptr<const Job> job_;
  const MemoryLimitOptions options_;
  const uint64_t process_bytes_;
  std::unique_ptr<FileLock>
      folder_lock_;  // Of the folder of disk_; before it, as it is given back last.
  mutable Mutex trouble_mutex_;
  std::string trouble_ HDPS_GUARDED_BY(trouble_mutex_);
  std::unique_ptr<DiskStore> disk_;
  std::unique_ptr<MemoryBudget> budget_;
};

}  // namespace hdps
