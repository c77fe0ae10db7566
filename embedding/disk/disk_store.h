// The disk tier: blocks of rows that do not fit in memory, as bytes under (shard, table, number).
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

// Names the blocks of one shard's slice of one table.
struct DiskSpace {
  ShardId shard;  // Below 2^16, as is the table.
  TableId table;
};

struct DiskBlock {
  uint64_t number = 0;
  std::span<const std::byte> bytes;
};

struct DiskStoreOptions {
  std::string folder;         // Emptied first, removed in the end. Nothing else may use it.
  uint64_t memory_bytes = 0;  // For blocks being written; memory_bytes() tells all memory.
  // How long a write waits while the disk is full before it fails. It is tried again in that time.
  int64_t full_wait_ms = 0;
  // Called by the waiting thread with the reason, and with an empty text when it goes on. May be
  // empty.
  std::function<void(const std::string& why)> on_full = {};
  FileSystem* files = nullptr;  // May inject faults; null: the system's files.
};

// Stores blocks for the lifetime of the object only. Nothing is logged and nothing is synced,
// because the blocks are not needed after a crash.
//
// Calls for different spaces may come from several threads at once; calls for one space come one
// after the other. Every failure is kIoError; its message names the folder, the disk's error and a
// remedy. A store that failed once must not be used any more. A full disk is not a failure at
// first: writes are kept and wait, because an operator may make room.
class DiskStore {
 public:
  virtual ~DiskStore() = default;

  // Writes blocks. Requires: numbers ascend and are new. Made for blocks of a few KiB.
  virtual Status Put(const DiskSpace& space, std::span<const DiskBlock> blocks) = 0;
  // Calls visit(k, bytes of block numbers[k]) for every k in order, until a visit returns an error.
  // Requires: numbers ascend and exist.
  using Visit = std::function<Status(size_t k, std::span<const std::byte> bytes)>;
  virtual Status Get(const DiskSpace& space, std::span<const uint64_t> numbers,
                     const Visit& visit) = 0;
  virtual Status Erase(const DiskSpace& space, std::span<const uint64_t> numbers) = 0;
  virtual Status EraseAll(const DiskSpace& space) = 0;
  // Makes writes that wait for a full disk fail at once, now and from now on. May be called from
  // any thread.
  virtual void StopWaiting() {}
  // Returns the error for a block that does not read as it was written.
  virtual Status Damaged(const std::string& what) const = 0;

  // Memory in use: blocks not yet written, and the index of those on disk.
  virtual uint64_t memory_bytes() const = 0;
  virtual uint64_t disk_bytes() const = 0;
};

// Returns a store on RocksDB, in files. kInvalidArgument if the folder cannot be made or is in use;
// kIoError if there is no room for it. `options.files` must outlive the store.
Result<std::unique_ptr<DiskStore>> NewRocksDiskStore(const DiskStoreOptions& options);

}  // namespace hdps
