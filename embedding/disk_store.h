// The disk tier: rows that memory has no room for, as bytes under (shard, table, key).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/ids.h"
#include "common/status.h"

namespace hdps {

// The rows of one shard's slice of one table: all of one length.
struct DiskSpace {
  ShardId shard;  // Below 2^16, as the table.
  TableId table;
  uint32_t row_bytes = 0;
};

struct DiskStoreOptions {
  std::string folder;         // Emptied first, removed in the end. Nobody else may use it.
  uint64_t memory_bytes = 0;  // For what is being written; see memory_bytes() for all of it.
};

// Not durable: what it holds ends with it, so nothing is logged and nothing waits for the disk.
//
// Calls for different spaces may come from several threads at once; those for one space come one
// after the other. Keys of a call ascend and differ. Every failure is kIoError and names the
// folder, what the disk said and what would help; a store that failed once is good for nothing
// more.
class DiskStore {
 public:
  virtual ~DiskStore() = default;

  // rows[keys.size() * row_bytes]; a key that has a row gets a new one.
  virtual Status Put(const DiskSpace& space, std::span<const Key> keys,
                     std::span<const std::byte> rows) = 0;
  // found[k] becomes 1 where there is a row, else 0 and the place in `rows` is left as it was.
  virtual Status Get(const DiskSpace& space, std::span<const Key> keys, std::span<std::byte> rows,
                     std::span<uint8_t> found) = 0;
  virtual Status Erase(const DiskSpace& space, std::span<const Key> keys) = 0;
  virtual Status EraseAll(const DiskSpace& space) = 0;
  // Every row of the space in ascending order of keys, until `visit` returns false.
  using Visit = std::function<bool(Key key, std::span<const std::byte> row)>;
  virtual Status Scan(const DiskSpace& space, const Visit& visit) = 0;

  // What it takes of memory now: rows not yet written, and what finds those that are.
  virtual uint64_t memory_bytes() const = 0;
  virtual uint64_t disk_bytes() const = 0;
};

// On RocksDB, in files. kInvalidArgument when the folder cannot be made or is in use.
Result<std::unique_ptr<DiskStore>> NewRocksDiskStore(const DiskStoreOptions& options);
// In memory after all, for tests and the simulator; in no folder.
std::unique_ptr<DiskStore> NewMemoryDiskStore();

// Bytes of memory that find one row on disk: its part of a Bloom filter and of an index.
inline constexpr double kDiskIndexBytesPerRow = 2.0;

}  // namespace hdps
