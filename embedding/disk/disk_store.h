// The disk tier: blocks of rows that memory has no room for, as bytes under (shard, table, number).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// The blocks of one shard's slice of one table.
struct DiskSpace {
  ShardId shard;  // Below 2^16, as the table.
  TableId table;
};

struct DiskBlock {
  uint64_t number = 0;
  std::span<const std::byte> bytes;
};

struct DiskStoreOptions {
  std::string folder;         // Emptied first, removed in the end. Nobody else may use it.
  uint64_t memory_bytes = 0;  // For what is being written; see memory_bytes() for all of it.
  // While the disk is full a write waits for so long, and is tried again; then it fails.
  int64_t full_wait_ms = 0;
  // Called by the thread that waits: why, and with an empty text when it goes on. May be empty.
  std::function<void(const std::string& why)> on_full = {};
  FileSystem* files = nullptr;  // That may have faults on purpose; null: there are none.
};

// Not durable: what it holds ends with it, so nothing is logged and nothing waits for the disk.
//
// Calls for different spaces may come from several threads at once; those for one space come one
// after the other. Every failure is kIoError and names the folder, what the disk said and what
// would help; a store that failed once is good for nothing more. A full disk is no failure while
// somebody may still make room: what is to be written is kept and waits.
class DiskStore {
 public:
  virtual ~DiskStore() = default;

  // Numbers ascend and are new. Blocks of a few KiB are what it is made for.
  virtual Status Put(const DiskSpace& space, std::span<const DiskBlock> blocks) = 0;
  // Calls visit(k, bytes of block numbers[k]) for every k in order, until one is not ok. Numbers
  // ascend and are there.
  using Visit = std::function<Status(size_t k, std::span<const std::byte> bytes)>;
  virtual Status Get(const DiskSpace& space, std::span<const uint64_t> numbers,
                     const Visit& visit) = 0;
  virtual Status Erase(const DiskSpace& space, std::span<const uint64_t> numbers) = 0;
  virtual Status EraseAll(const DiskSpace& space) = 0;
  // Those that wait for a full disk fail at once, now and from now on. From any thread.
  virtual void StopWaiting() {}
  // What to say of a block that is not as it was written.
  virtual Status Damaged(const std::string& what) const = 0;

  // What it takes of memory now: blocks not yet written, and what finds those that are.
  virtual uint64_t memory_bytes() const = 0;
  virtual uint64_t disk_bytes() const = 0;
};

// On RocksDB, in files. kInvalidArgument when the folder cannot be made or is in use; kIoError when
// there is no room for it. `options.files` must outlive it.
Result<std::unique_ptr<DiskStore>> NewRocksDiskStore(const DiskStoreOptions& options);

}  // namespace hdps
