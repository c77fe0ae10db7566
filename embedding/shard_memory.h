// What the rows of a server may take of its memory, shared out among its shards and their slices.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "embedding/disk/disk_store.h"
#include "embedding/memory/row_index.h"

namespace hdps {

class TieredRows;

// One for all shards of a server: each may have the same part of what `others` leaves of the limit.
//
// May be used by several threads at once.
class MemoryBudget {
 public:
  // others(row_bytes): what everything but the rows takes now, while the rows take `row_bytes`.
  MemoryBudget(uint64_t limit_bytes, std::function<uint64_t(uint64_t row_bytes)> others)
      : limit_bytes_(limit_bytes), others_(std::move(others)) {}

  uint64_t row_bytes() const { return row_bytes_; }
  void AddShard() { ++shards_; }
  void RemoveShard() { --shards_; }
  // A shard's rows take `now` bytes, after `before` when it last reported.
  void Report(uint64_t before, uint64_t now) { row_bytes_ += now - before; }
  // What the rows of each shard may take now. Says once in the log that the limit cannot be kept,
  // when a tenth more is taken: rows that are on disk are found by an index in memory.
  uint64_t Share() HDPS_EXCLUDES(mutex_);

 private:
  const uint64_t limit_bytes_;
  std::atomic<uint64_t> row_bytes_ = 0;
  std::atomic<uint64_t> shards_ = 0;
  std::atomic<bool> said_ = false;  // That the limit cannot be kept.
  Mutex mutex_;
  const std::function<uint64_t(uint64_t)> others_ HDPS_GUARDED_BY(mutex_);
};

// One shard's share, and where its slices put the rows for which it has no room.
//
// Invariant: the rows of the slices take at most the share, but for some hundred rows that each
// keeps. Used by one task at a time.
class ShardMemory {
 public:
  ShardMemory(MemoryBudget& budget, DiskStore& disk);
  ~ShardMemory();
  ShardMemory(const ShardMemory&) = delete;
  ShardMemory& operator=(const ShardMemory&) = delete;

  DiskStore& disk() { return disk_; }
  void Add(TieredRows* rows) { slices_.push_back(rows); }
  void Remove(TieredRows* rows) { std::erase(slices_, rows); }

  // True when a call for `keys` keys can make `rows` new rows in the slice without anything leaving
  // memory.
  bool HasRoom(const TieredRows& slice, size_t rows, size_t keys) const;
  // Moves rows to disk until HasRoom, or until there is little left to move: of the slice that
  // takes most, which under Zipf's law costs the fewest misses.
  void MakeRoom(TieredRows& slice, size_t rows, size_t keys);

  // After rows were made: reports to the budget what all of them take.
  void ReportBytes();

  // The first failure of the disk. From then on rows may read as what they are not: nobody may be
  // answered, nothing saved.
  const Status& failure() const { return failure_; }
  void Fail(const Status& status);

 private:
  uint64_t bytes() const;

  MemoryBudget& budget_;
  DiskStore& disk_;
  std::vector<TieredRows*> slices_;
  uint64_t share_ = 0, reported_bytes_ = 0;
  Status failure_;
};

// Where the rows of a slice may lie. Without a memory: in memory, as many as there are.
struct RowPlacement {
  ShardId shard;
  uint32_t num_shards = 1;
  ShardMemory* memory = nullptr;
  size_t rows_max = kRowNumbersMax;  // In memory; less only in tests.
};

}  // namespace hdps
