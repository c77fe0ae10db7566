// Divides a server's memory for rows among its shards and their slices.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "embedding/disk/disk_store.h"
#include "embedding/memory/row_index.h"

namespace hdps {

class TieredRows;

// The memory limit of a server. Each of its shards gets an equal part of what `others` leaves of
// it. May be used by several threads at once.
class MemoryBudget {
 public:
  // others(row_bytes) returns the memory of everything but the rows while the rows take
  // `row_bytes`.
  MemoryBudget(uint64_t limit_bytes, std::function<uint64_t(uint64_t row_bytes)> others)
      : limit_bytes_(limit_bytes), others_(std::move(others)) {}

  uint64_t row_bytes() const { return row_bytes_; }
  void AddShard() { ++shards_; }
  void RemoveShard() { --shards_; }
  // Notes that a shard's rows take `now` bytes, after `before` in its last report.
  void Report(uint64_t before, uint64_t now) { row_bytes_ += now - before; }
  // Returns how many bytes the rows of each shard may take now. Logs once that the limit cannot be
  // kept when a tenth more is in use: rows on disk still need an index in memory.
  uint64_t Share() HDPS_EXCLUDES(mutex_);

 private:
  const uint64_t limit_bytes_;
  std::atomic<uint64_t> row_bytes_ = 0;
  std::atomic<uint64_t> shards_ = 0;
  std::atomic<bool> said_ = false;  // The warning about the limit was logged.
  Mutex mutex_;
  const std::function<uint64_t(uint64_t)> others_ HDPS_GUARDED_BY(mutex_);
};

// Keeps one shard's rows within its share, by moving rows to disk.
//
// Invariant: the rows of the slices take at most the share, except for some hundred rows that each
// slice keeps. Used by one task at a time.
class ShardMemory {
 public:
  ShardMemory(MemoryBudget& budget, DiskStore& disk);
  ~ShardMemory();
  ShardMemory(const ShardMemory&) = delete;
  ShardMemory& operator=(const ShardMemory&) = delete;

  DiskStore& disk() { return disk_; }
  // Held by whoever changes rows, and by who reads those of a save meanwhile (RowsAtSave).
  const std::shared_ptr<Mutex>& gate() const { return gate_; }
  void Add(TieredRows* rows) { slices_.push_back(rows); }
  void Remove(TieredRows* rows) { std::erase(slices_, rows); }

  // Returns whether a call for `keys` keys can make `rows` new rows in the slice without moving
  // rows out of memory.
  bool HasRoom(const TieredRows& slice, size_t rows, size_t keys) const;
  // Moves rows to disk until HasRoom or until little is left to move. It takes rows of the slice
  // with the most memory, which under Zipf's law costs the fewest misses.
  void MakeRoom(TieredRows& slice, size_t rows, size_t keys);

  // Reports the memory of all slices to the budget, after rows were made.
  void ReportBytes();

  // The first failure of the disk. From then on rows may read wrong: no request may be answered and
  // nothing saved.
  const Status& failure() const { return failure_; }
  void Fail(const Status& status);

 private:
  uint64_t bytes() const;

  MemoryBudget& budget_;
  DiskStore& disk_;
  const std::shared_ptr<Mutex> gate_ = std::make_shared<Mutex>();
  std::vector<TieredRows*> slices_;
  uint64_t share_ = 0, reported_bytes_ = 0;
  Status failure_;
};

// Where the rows of a slice may lie. Without `memory` all of them stay in memory.
struct RowPlacement {
  ShardId shard;
  uint32_t num_shards = 1;
  ShardMemory* memory = nullptr;
  size_t rows_max = kRowNumbersMax;  // Rows in memory; less only in tests.
};

}  // namespace hdps
