// The rows of one slice that are on disk: packed in blocks, a log that is cleaned from its old end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "embedding/disk/disk_index.h"
#include "embedding/disk/disk_store.h"

namespace hdps {

// A row is put here when it leaves memory and taken when it comes back, so it is in one of both.
// Rows that come together lie together, a few KiB of them a block; blocks are never changed. A
// block goes with the last of its rows; while more than half of what is on disk belongs to nobody
// any more, or most numbers between the oldest block and the newest are of blocks that are gone,
// the rows that are left in the oldest blocks are written anew. The blocks of one Put are a run:
// their keys ascend. When there are many runs the smallest become one, so that all rows can be read
// in order with a block of each run in memory.
//
// Invariant: `index_` has the pair (key, block) for exactly the rows that are here, and each
// block's `live` counts its pairs; keys of a block differ in their alias. Used by one task at a
// time; a failure of the disk leaves it good for nothing but its end.
class DiskRows {
 public:
  // `disk` must outlive it; nobody else uses the space. `blocks_max`: of those in use; less than
  // the index can number only in tests.
  DiskRows(DiskStore* disk, const DiskSpace& space, size_t row_bytes,
           uint64_t blocks_max = DiskIndex::kBlocksMax);
  ~DiskRows();
  DiskRows(const DiskRows&) = delete;
  DiskRows& operator=(const DiskRows&) = delete;

  size_t size() const { return index_.size(); }
  // Of memory: index and blocks' counts.
  size_t bytes() const { return index_.bytes() + blocks_.size() * sizeof(Block); }
  // What a Put of `rows` rows may add to it.
  size_t GrowthBytes(size_t rows) const { return index_.GrowthBytes(rows); }
  // bytes() with so many rows, about.
  static size_t PredictBytes(size_t row_bytes, size_t rows);
  void Prefetch(Key key) const { index_.Prefetch(key); }
  // True of every row that is here, and of one absent key in some hundred (see DiskIndex).
  bool MayHave(Key key) const {
    bool found = false;
    index_.ForEachBlock(key, [&found](uint32_t) { found = true; });
    return found;
  }

  // rows[keys.size() * row_bytes]: rows that are not here. Keys ascend.
  Status Put(std::span<const Key> keys, std::span<const std::byte> rows);
  // Calls use(key, row) for those of `keys` that are here, in no order that means anything; then
  // they are no more.
  using Use = std::function<void(Key key, std::span<const std::byte> row)>;
  Status Take(std::span<const Key> keys, const Use& use);

  // Every row of the blocks from `from` on, in their order; and by ascending key, with a block of
  // each run in memory. Rows put after a block_end() are in the blocks from it on, and among them
  // some that were written anew.
  using Visit = std::function<Status(Key key, std::span<const std::byte> row)>;
  Status ForEach(const Visit& visit, uint64_t from = 0) const;
  Status ForEachInOrder(const Visit& visit, uint64_t from = 0) const;
  uint64_t block_end() const { return end(); }
  size_t num_runs() const { return Runs(0).size(); }  // At most 769; by looking at all blocks.

 private:
  static constexpr int kRowsBits = 15;
  struct Block {
    uint32_t rows : kRowsBits, live : kRowsBits;
    uint32_t begins_run : 1;  // Keys ascend up to the next that does.
  };
  struct Run {
    uint64_t begin, end;  // Blocks.
    uint64_t live = 0;    // Rows that are here: one or more.
  };
  class BlockRows;
  class RunWalk;

  uint64_t end() const { return first_ + blocks_.size(); }
  Block& BlockAt(uint64_t number) { return blocks_[number - first_]; }
  const Block& BlockAt(uint64_t number) const { return blocks_[number - first_]; }
  // The block in use with these lower bits; end() when there is none.
  uint64_t NumberOf(uint32_t lower_bits) const;
  size_t RowsPerBlock() const;
  // At the end of the log: a run, or more of the last one.
  Status Write(std::span<const Key> keys, std::span<const std::byte> rows, bool begins_run = true);
  // Writes about `rows` rows of the oldest blocks anew, fewer when there is little to gain.
  Status Clean(size_t rows);
  // Whether there is, when `taken` rows are yet to be written.
  bool WorthCleaning(size_t taken) const;
  Status TakeOldest(size_t rows, std::vector<Key>* keys, std::vector<std::byte>* bytes);
  // Whether the block's row of the key was still here; it is no more.
  bool Forget(Key key, uint64_t number);
  Status EraseEmpty();
  std::vector<Run> Runs(uint64_t from) const;
  // use(key, its block, row) for the rows of these runs, by ascending key.
  template <typename UseRow>
  Status Merge(const std::vector<Run>& runs, const UseRow& use) const;
  // Where there are many runs: the smallest become one.
  Status MergeSmallest();
  // use(number, BlockRows) for each block.
  template <typename UseBlock>
  Status Read(std::span<const uint64_t> numbers, const UseBlock& use) const;

  DiskStore* const disk_;
  const DiskSpace space_;
  const size_t row_bytes_;
  const uint64_t blocks_max_;
  DiskIndex index_;
  std::deque<Block> blocks_;  // From number first_ on.
  uint64_t first_ = 0;
  uint64_t rows_written_ = 0;    // In blocks with a row that is here,
  uint64_t blocks_live_ = 0;     // and so many these are.
  std::vector<uint64_t> empty_;  // Blocks with none, to be erased from disk.
  size_t runs_begun_ = 0;        // Since they were counted.
};

}  // namespace hdps
