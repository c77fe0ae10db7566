// The rows of one slice that are on disk, packed in blocks: a log that is cleaned from its old end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "embedding/disk/disk_index.h"
#include "embedding/disk/disk_store.h"

namespace hdps {

// A row is put here when it leaves memory and taken when it comes back, so it is in one of the two
// tiers. Rows of one Put lie together in blocks of a few KiB, which are never changed.
//
// A block is erased when its last row was taken. Cleaning writes the rows left in the oldest blocks
// anew. It starts when more than half of the rows on disk are stale, or when most block numbers
// between the oldest and the newest belong to erased blocks.
//
// The blocks of one Put form a run, whose keys ascend. If there are many runs, the smallest are
// merged into one, so that all rows can be read in key order with one block of each run in memory.
//
// Invariant: `index_` has the pair (key, block) for exactly the rows that are here; each block's
// `live` counts its pairs; the keys of a block differ in their alias. Used by one task at a time.
// After a failure of the disk the object may only be destroyed.
class DiskRows {
 public:
  // `disk` must outlive the object, and nothing else uses the space. `blocks_max` limits the blocks
  // in use; tests set it below what the index can number.
  DiskRows(DiskStore* disk, const DiskSpace& space, size_t row_bytes,
           uint64_t blocks_max = DiskIndex::kBlocksMax);
  ~DiskRows();
  DiskRows(const DiskRows&) = delete;
  DiskRows& operator=(const DiskRows&) = delete;

  size_t size() const { return index_.size(); }
  // Memory of the index and of the blocks' counts; the rows are on disk.
  size_t bytes() const { return index_.bytes() + blocks_.size() * sizeof(Block); }
  // Estimates what a Put of `rows` rows adds to bytes().
  size_t GrowthBytes(size_t rows) const { return index_.GrowthBytes(rows); }
  // Estimates bytes() with `rows` rows.
  static size_t PredictBytes(size_t row_bytes, size_t rows);
  void Prefetch(Key key) const { index_.Prefetch(key); }
  // Returns true for every row that is here, and for one absent key in some hundred (see
  // DiskIndex).
  bool MayHave(Key key) const {
    bool found = false;
    index_.ForEachBlock(key, [&found](uint32_t) { found = true; });
    return found;
  }

  // Writes rows[keys.size() * row_bytes]. Requires: keys ascend, and none has a row here.
  Status Put(std::span<const Key> keys, std::span<const std::byte> rows);
  // Calls use(key, row) for each of `keys` that has a row here, in no particular order, and removes
  // these rows.
  using Use = std::function<void(Key key, std::span<const std::byte> row)>;
  Status Take(std::span<const Key> keys, const Use& use);

  // Visit every row in the blocks from number `from` on: ForEach in the order of the blocks,
  // ForEachInOrder by ascending key, with one block of each run in memory. Rows put after
  // block_end() was read are in the blocks from that number on, among older rows that cleaning
  // wrote anew.
  using Visit = std::function<Status(Key key, std::span<const std::byte> row)>;
  Status ForEach(const Visit& visit, uint64_t from = 0) const;
  Status ForEachInOrder(const Visit& visit, uint64_t from = 0) const;
  class Reader;
  uint64_t block_end() const { return end(); }
  size_t num_runs() const { return Runs(0).size(); }  // Looks at all blocks. At most 769.

 private:
  static constexpr int kRowsBits = 15;
  // Number of runs merged at a time, once there are twice as many.
  static constexpr size_t kMergeRuns = 256;
  struct Block {
    uint32_t rows : kRowsBits, live : kRowsBits;
    uint32_t begins_run : 1;  // Keys ascend up to the next block with this bit.
  };
  // Consecutive blocks whose keys ascend.
  struct Run {
    uint64_t begin, end;  // Numbers of its blocks.
    uint64_t live = 0;    // Rows that are here; at least one.
  };
  class RunWalk;

  uint64_t end() const { return first_ + blocks_.size(); }
  Block& BlockAt(uint64_t number) { return blocks_[number - first_]; }
  const Block& BlockAt(uint64_t number) const { return blocks_[number - first_]; }
  // Returns the block in use whose number has these lower bits; end() if there is none.
  uint64_t NumberOf(uint32_t lower_bits) const;
  size_t RowsPerBlock() const;
  // Appends blocks to the log, as a new run or as more of the last one.
  Status Write(std::span<const Key> keys, std::span<const std::byte> rows, bool begins_run = true);
  // Writes about `rows` rows of the oldest blocks anew; fewer if little would be gained.
  Status Clean(size_t rows);
  // Returns whether cleaning is worth it, once `taken` rows more have been written.
  bool WorthCleaning(size_t taken) const;
  Status TakeOldest(size_t rows, std::vector<Key>* keys, std::vector<std::byte>* bytes);
  // Removes the block's row of the key; returns whether it was there.
  bool Forget(Key key, uint64_t number);
  Status EraseEmpty();
  std::vector<Run> Runs(uint64_t from) const;
  // Merges the smallest runs into one if there are many.
  Status MergeSmallest();
  // Calls use(number, DiskBlockRows) for each block.
  template <typename UseBlock>
  Status Read(std::span<const uint64_t> numbers, const UseBlock& use) const;

  DiskStore* const disk_;
  const DiskSpace space_;
  const size_t row_bytes_;
  const uint64_t blocks_max_;
  DiskIndex index_;
  std::deque<Block> blocks_;  // Blocks from number first_ on.
  uint64_t first_ = 0;
  uint64_t rows_written_ = 0;    // Rows in blocks that have a row here.
  uint64_t blocks_live_ = 0;     // Number of these blocks.
  std::vector<uint64_t> empty_;  // Blocks without a row, not yet erased from disk.
  size_t runs_begun_ = 0;        // Runs begun since runs were last counted.
};

// Goes through rows on disk by ascending key, while rows are put and taken in between. Holds one
// block of each run in memory.
//
// Invariant: unless it has ended, the reader stands at a row that was here when it last moved.
class DiskRows::Reader {
 public:
  // Reads the rows in the blocks from number `from` on. `rows` must outlive the reader.
  Reader(const DiskRows& rows, uint64_t from);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Moves to the first row from key `first` on that is here now. Must be called before the first
  // row is read, and after rows were put or taken; `first` must not fall.
  Status Seek(Key first);
  bool ended() const;
  Key key() const;
  std::span<const std::byte> row() const;
  Status Next();

 private:
  friend class DiskRows;
  struct Walks;
  Reader(const DiskRows& rows, const std::vector<Run>& runs);  // Reads these runs alone.
  void AddWalks(const std::vector<Run>& runs);
  uint64_t block() const;  // Number of the row's block.

  const DiskRows& rows_;
  uint64_t seen_;  // Blocks from this number on are not among the walks yet.
  std::unique_ptr<Walks> walks_;
};

}  // namespace hdps
