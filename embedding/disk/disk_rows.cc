// Packs rows into blocks, and reads, merges and cleans these.
#include "embedding/disk/disk_rows.h"

#include <glog/logging.h>

#include <algorithm>
#include <bitset>
#include <cstring>
#include <string>
#include <utility>

#include "common/base/hash.h"
#include "embedding/disk/disk_block.h"

namespace hdps {
namespace {

constexpr uint64_t kIndexSalt = 0x51c3e8a70d96b24fu;
constexpr size_t kBlockBytes = 4096;
constexpr size_t kReadBlocks = 64;  // Blocks read together.
constexpr size_t kEraseBlocks = 64;
// Number of stale rows that are tolerated before the log is cleaned.
constexpr uint64_t kSlackRows = 1024;
constexpr uint64_t kSlackBlocks = 256;  // Number of stale block numbers that are tolerated.
}  // namespace

DiskRows::DiskRows(DiskStore* disk, const DiskSpace& space, size_t row_bytes, uint64_t blocks_max)
    : disk_(disk),
      space_(space),
      row_bytes_(row_bytes),
      blocks_max_(blocks_max),
      index_(kIndexSalt) {}

DiskRows::~DiskRows() {
  if (end() == 0) return;  // Never used the disk; disk_ may be null.
  const Status erased = disk_->EraseAll(space_);
  if (!erased.ok()) LOG(WARNING) << erased.message();
}

// Returns more rows a block if a slice has so many blocks that their numbers would run out.
size_t DiskRows::RowsPerBlock() const {
  const size_t bytes = kBlockBytes << blocks_.size() / (blocks_max_ / 8);
  return std::clamp<size_t>(bytes / (sizeof(Key) + row_bytes_), 1, (1 << kRowsBits) - 1);
}

size_t DiskRows::PredictBytes(size_t row_bytes, size_t rows) {
  // At most half of the rows in blocks are stale.
  const size_t rows_of_block = std::max<size_t>(kBlockBytes / (sizeof(Key) + row_bytes), 1);
  return DiskIndex::PredictBytes(rows) + 2 * rows / rows_of_block * sizeof(Block);
}

uint64_t DiskRows::NumberOf(uint32_t lower_bits) const {
  return first_ + ((lower_bits - first_) & index_.block_mask());
}

template <typename UseBlock>
Status DiskRows::Read(std::span<const uint64_t> numbers, const UseBlock& use) const {
  DiskBlockRows block;
  return disk_->Get(space_, numbers, [&](size_t k, std::span<const std::byte> bytes) -> Status {
    HDPS_RETURN_IF_ERROR(block.Open(bytes, row_bytes_, *disk_));
    return use(numbers[k], block);
  });
}

Status DiskRows::Write(std::span<const Key> keys, std::span<const std::byte> rows,
                       bool begins_run) {
  const size_t rows_max = RowsPerBlock();
  std::vector<std::byte> bytes;
  std::vector<size_t> ends;  // End of each block in `bytes`.
  bytes.reserve(DiskBlockRows::BytesOf(keys.size(), row_bytes_) +
                (keys.size() / rows_max + 1) * DiskBlockRows::kHeaderBytes);
  const uint64_t first_new = end();
  std::bitset<DiskIndex::kAliases> aliases;
  for (size_t begin = 0; begin < keys.size();) {
    size_t block_end = begin;
    for (aliases.reset(); block_end < keys.size() && block_end - begin < rows_max; ++block_end) {
      const uint32_t alias = index_.Alias(keys[block_end]);
      if (aliases.test(alias)) break;
      aliases.set(alias);
    }
    if (blocks_.size() + 1 >= blocks_max_) {
      return {Code::kResourceExhausted,
              "a shard of a table has " + std::to_string(size()) +
                  " rows on disk, as many as it can find there; give the job more cluster.shards"};
    }
    const uint64_t count = block_end - begin;
    const auto append = [&bytes](std::span<const std::byte> more) {
      bytes.insert(bytes.end(), more.begin(), more.end());
    };
    const size_t at = bytes.size();
    const uint64_t header[2] = {0, count};
    append(std::as_bytes(std::span(header)));
    append(std::as_bytes(keys.subspan(begin, count)));
    append(rows.subspan(begin * row_bytes_, count * row_bytes_));
    const uint64_t hash = HashBytes(std::span(bytes).subspan(at + sizeof(uint64_t)));
    std::memcpy(&bytes[at], &hash, sizeof(hash));
    ends.push_back(bytes.size());
    index_.WillHold(first_, end() + 1);
    for (size_t k = begin; k < block_end; ++k) index_.Prefetch(keys[k]);
    for (size_t k = begin; k < block_end; ++k) index_.Add(keys[k], end());
    const uint32_t held = static_cast<uint32_t>(count) & ((1u << kRowsBits) - 1);
    blocks_.push_back({held, held, begins_run && begin == 0 ? 1u : 0u});
    ++blocks_live_;
    begin = block_end;
  }
  rows_written_ += keys.size();
  runs_begun_ += begins_run ? 1 : 0;
  std::vector<DiskBlock> written;
  for (size_t b = 0, at = 0; b < ends.size(); at = ends[b++]) {
    written.push_back({first_new + b, std::span(bytes).subspan(at, ends[b] - at)});
  }
  return disk_->Put(space_, written);
}

Status DiskRows::Put(std::span<const Key> keys, std::span<const std::byte> rows) {
  CHECK_EQ(rows.size(), keys.size() * row_bytes_);
  if (keys.empty()) return {};
  HDPS_RETURN_IF_ERROR(Write(keys, rows));
  HDPS_RETURN_IF_ERROR(Clean(2 * keys.size()));
  if (runs_begun_ >= kMergeRuns) HDPS_RETURN_IF_ERROR(MergeSmallest());
  return empty_.size() < kEraseBlocks ? Status() : EraseEmpty();
}

bool DiskRows::Forget(Key key, uint64_t number) {
  if (!index_.Remove(key, number)) return false;
  Block& block = BlockAt(number);
  if (--block.live > 0) return true;
  rows_written_ -= block.rows;
  --blocks_live_;
  empty_.push_back(number);
  return true;
}

Status DiskRows::EraseEmpty() {
  std::ranges::sort(empty_);
  HDPS_RETURN_IF_ERROR(disk_->Erase(space_, empty_));
  empty_.clear();
  for (; !blocks_.empty() && blocks_.front().live == 0; ++first_) {
    blocks_.pop_front();
    // The run goes on without its first block.
    if (!blocks_.empty()) blocks_.front().begins_run = 1;
  }
  return {};
}

Status DiskRows::Take(std::span<const Key> keys, const Use& use) {
  struct Place {
    uint64_t number;
    Key key;
  };
  std::vector<Place> places;
  for (const Key key : keys) {
    index_.ForEachBlock(key, [&](uint32_t block) { places.push_back({NumberOf(block), key}); });
  }
  std::ranges::sort(places, {}, &Place::number);
  std::vector<uint64_t> numbers;
  for (size_t begin = 0; begin < places.size();) {
    numbers.clear();
    size_t end = begin;
    for (; end < places.size(); ++end) {
      if (!numbers.empty() && numbers.back() == places[end].number) continue;
      if (numbers.size() == kReadBlocks) break;
      numbers.push_back(places[end].number);
    }
    HDPS_RETURN_IF_ERROR(Read(numbers, [&](uint64_t number, const DiskBlockRows& block) -> Status {
      for (; begin < end && places[begin].number == number; ++begin) {
        const Key key = places[begin].key;
        const auto at = std::ranges::lower_bound(block.keys(), key);
        // The index may have named a wrong block, or the block may hold an older copy of the row.
        if (at == block.keys().end() || *at != key || !Forget(key, number)) continue;
        use(key, block.Row(static_cast<size_t>(at - block.keys().begin())));
      }
      return {};
    }));
  }
  return empty_.size() < kEraseBlocks ? Status() : EraseEmpty();
}

bool DiskRows::WorthCleaning(size_t taken) const {
  return rows_written_ > 2 * size() + taken || blocks_.size() > 4 * blocks_live_ + kSlackBlocks;
}

Status DiskRows::Clean(size_t rows) {
  if (!WorthCleaning(kSlackRows)) return {};
  std::vector<Key> keys;
  std::vector<std::byte> bytes;
  HDPS_RETURN_IF_ERROR(TakeOldest(rows, &keys, &bytes));
  std::vector<uint32_t> order(keys.size());
  for (uint32_t k = 0; k < order.size(); ++k) order[k] = k;
  std::ranges::sort(order, {}, [&keys](uint32_t k) { return keys[k]; });
  std::vector<Key> sorted_keys;
  std::vector<std::byte> sorted_bytes;
  sorted_keys.reserve(keys.size());
  sorted_bytes.reserve(bytes.size());
  for (const uint32_t k : order) {
    sorted_keys.push_back(keys[k]);
    const auto row = bytes.begin() + static_cast<ptrdiff_t>(k * row_bytes_);
    sorted_bytes.insert(sorted_bytes.end(), row, row + static_cast<ptrdiff_t>(row_bytes_));
  }
  return Write(sorted_keys, sorted_bytes);
}

Status DiskRows::TakeOldest(size_t rows, std::vector<Key>* keys, std::vector<std::byte>* bytes) {
  std::vector<uint64_t> numbers;
  uint64_t next = first_;
  const uint64_t last = end();
  // WorthCleaning tells how it will be once the taken rows are written again.
  while (keys->size() < rows && WorthCleaning(keys->size()) && next < last) {
    for (numbers.clear(); numbers.size() < kReadBlocks && next < last; ++next) {
      if (BlockAt(next).live > 0) numbers.push_back(next);
    }
    HDPS_RETURN_IF_ERROR(Read(numbers, [&](uint64_t number, const DiskBlockRows& block) -> Status {
      for (size_t r = 0; r < block.keys().size(); ++r) {
        const Key key = block.keys()[r];
        if (!Forget(key, number)) continue;
        keys->push_back(key);
        bytes->insert(bytes->end(), block.Row(r).begin(), block.Row(r).end());
      }
      return {};
    }));
  }
  return {};
}

Status DiskRows::ForEach(const Visit& visit, uint64_t from) const {
  const auto visit_rows = [&](uint64_t number, const DiskBlockRows& block) -> Status {
    for (size_t r = 0; r < block.keys().size(); ++r) {
      if (!index_.Has(block.keys()[r], number)) continue;
      HDPS_RETURN_IF_ERROR(visit(block.keys()[r], block.Row(r)));
    }
    return {};
  };
  std::vector<uint64_t> numbers;
  for (uint64_t next = std::max(first_, from); next < end();) {
    for (numbers.clear(); numbers.size() < kReadBlocks && next < end(); ++next) {
      if (BlockAt(next).live > 0) numbers.push_back(next);
    }
    HDPS_RETURN_IF_ERROR(Read(numbers, visit_rows));
  }
  return {};
}

}  // namespace hdps
