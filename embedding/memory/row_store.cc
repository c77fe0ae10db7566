// Implements slabs, row numbers, and lists of keys in order.
#include "embedding/memory/row_store.h"

#include <glog/logging.h>

#include <bit>
#include <cstring>
#include <functional>

namespace hdps {
namespace {

// Address space reserved at a time; its pages are allocated when used.
constexpr size_t kSlabBytes = size_t{64} << 20;
constexpr size_t kPageBytes = 4096;
// Uses of a row that comes back from disk: it will soon be changed, and such rows come again. With
// 1, the rows of an early pull may leave before their push (3 to 30 % more rows come back, most
// where memory has room for few steps).
constexpr uint32_t kUsesOnReturn = 3;

size_t RoundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

// Memory is taken in these pieces at most before kSmallPagesEnd, and where no whole huge page fits.
constexpr size_t kSmallPieceBytes = size_t{64} << 10;
// The first rows of a store take no more than the pages they need.
constexpr size_t kSinglePagesEnd = size_t{1} << 20;
// From here on in the first slab, rows lie in huge pages: a store wastes half of one on average,
// which must be little beside its rows.
constexpr size_t kSmallPagesEnd = 8 * kHugePageBytes;

// Returns the bytes from one row to the next: whole lines of 64 bytes where one float more is
// enough for it.
size_t StrideOf(size_t row_bytes) {
  const size_t lines = RoundUp(row_bytes, 64);
  return lines - row_bytes <= sizeof(float) ? lines : row_bytes;
}

}  // namespace

RowStore::RowStore(size_t row_bytes, uint64_t salt, size_t piece_bytes, bool counts_changes,
                   uint32_t turn)
    : row_bytes_(row_bytes),
      stride_(StrideOf(row_bytes)),
      slab_shift_(std::bit_width(std::max<size_t>(1, kSlabBytes / stride_)) - 1),
      slab_mask_((size_t{1} << slab_shift_) - 1),
      piece_bytes_(piece_bytes),
      first_byte_(static_cast<size_t>(static_cast<double>(piece_bytes) * SpreadPoint(turn)) /
                  kPageBytes * kPageBytes),
      counts_changes_(counts_changes),
      index_(salt, turn) {
  CHECK_GT(row_bytes, 0u);
  CHECK_EQ(row_bytes % sizeof(float), 0u);
}

size_t RowStore::bytes() const {
  return index_.bytes() + asked_bytes_ + free_.capacity() * sizeof(uint32_t);
}

uint32_t RowStore::NewRow() {
  if (!free_.empty()) {
    const uint32_t row = free_.back();
    free_.pop_back();
    return row;
  }
  CHECK_LT(made_, kRowNumbersMax);
  const size_t end = (size_t{made_} + 1) * stride_;
  if (end > asked_bytes_) AskUpTo(PieceEnd(end));
  return made_++;
}

std::pair<size_t, size_t> RowStore::HugePagesOf(size_t slab) const {
  const size_t end = (first_byte_ + slab_bytes()) / kHugePageBytes * kHugePageBytes;
  const size_t begin = slab == 0 ? kSmallPagesEnd : RoundUp(first_byte_, kHugePageBytes);
  if (piece_bytes_ < kHugePageBytes || begin >= end) return {end, end};
  return {begin, end};
}

size_t RowStore::PieceEnd(size_t end) const {
  const size_t slab = (end - 1) / slab_bytes(), before = slab * slab_bytes();
  const auto [huge_begin, huge_end] = HugePagesOf(slab);
  const size_t at = first_byte_ + end - before;
  const size_t small = end <= std::min(piece_bytes_, kSinglePagesEnd)
                           ? kPageBytes
                           : std::min(piece_bytes_, kSmallPieceBytes);
  const bool huge = at > huge_begin && at <= huge_end;
  const size_t piece_end = RoundUp(at, huge ? kHugePageBytes : small);
  return before + std::min(piece_end - first_byte_, slab_bytes());
}

void RowStore::AskUpTo(size_t end) {
  while (asked_bytes_ < end) {
    const size_t slab = asked_bytes_ / slab_bytes(), before = slab * slab_bytes();
    if (slab == slabs_.size()) {
      slab_rows_.push_back(slabs_.emplace_back(first_byte_ + slab_bytes()).data() + first_byte_);
    }
    PageMemory& memory = slabs_.back();
    const size_t begin = first_byte_ + asked_bytes_ - before;
    const size_t until = std::min(end, before + slab_bytes());
    const auto [huge_begin, huge_end] = HugePagesOf(slab);
    // Asks once for all of the slab, not for each piece: madvise waits for all threads that are
    // touching pages of the process.
    if (begin <= huge_begin && first_byte_ + until - before > huge_begin) {
      memory.AskForHugePages(huge_begin, huge_end - huge_begin);
    }
    memory.Touch(begin, until - asked_bytes_);
    asked_bytes_ = until;
  }
}

bool RowStore::Erase(Key key) {
  RowSlot* const slot = index_.Find(key, index_.Home(key));
  if (!slot->used()) return false;
  free_.push_back(slot->row());
  index_.Erase(slot);
  return true;
}

size_t RowStore::PredictBytes(size_t row_bytes, size_t rows) {
  const size_t end = rows * StrideOf(row_bytes), index = RowIndex::PredictBytes(rows);
  if (end <= kSinglePagesEnd) return RoundUp(end, kPageBytes) + index;
  // Stores whose first row lies late in its memory have reached huge pages before others.
  const auto reached =
      std::clamp(static_cast<double>(end) - double{kSmallPagesEnd} + double{kHugePageBytes}, 0.0,
                 double{kHugePageBytes});
  const double huge_part = reached / double{kHugePageBytes};
  const double empty = huge_part * (double{kHugePageBytes} - reached / 2) +
                       (1 - huge_part) * double{kSmallPieceBytes} / 2;
  return end + static_cast<size_t>(empty) + index;
}

std::byte* RowStore::Insert(Key key, uint32_t version) {
  if (!index_.HasRoom(1)) index_.Prepare(1);
  RowSlot* const slot = index_.Find(key, index_.Home(key));
  CHECK(!slot->used()) << "key " << key << " has a row";
  const uint32_t number = NewRow();
  index_.Fill(slot, {key, number + 1, kUsesOnReturn, 0, version});
  return Row(number);
}

size_t RowStore::BytesToAdd(size_t rows, size_t keys) const {
  const size_t bytes = index_.GrowthBytes(keys);
  if (rows <= free_.size()) return bytes;
  const size_t end = (made_ + rows - free_.size()) * stride_;
  return end <= asked_bytes_ ? bytes : bytes + PieceEnd(end) - asked_bytes_;
}

void RowStore::Compact(size_t spare_rows) {
  if (free_.size() <= spare_rows) return;
  const auto rows_left = static_cast<uint32_t>(num_rows() + spare_rows);
  std::erase_if(free_, [rows_left](uint32_t row) { return row >= rows_left; });
  // In order, so that the same places are free afterwards wherever the index had put the keys.
  std::ranges::sort(free_, std::greater<>());
  index_.ForEach([&](RowSlot& slot) {
    if (slot.row() < rows_left) return;
    const uint32_t to = free_.back();
    free_.pop_back();
    std::memcpy(Row(to), Row(slot.row()), row_bytes_);
    slot.row_and_one = to + 1;
  });
  free_.shrink_to_fit();
  index_.Shrink(spare_rows);
  made_ = rows_left;
  const size_t asked = made_ == 0 ? 0 : PieceEnd(size_t{made_} * stride_);
  if (asked >= asked_bytes_) return;
  while (!slabs_.empty() && (slabs_.size() - 1) * slab_bytes() >= asked) {
    slabs_.pop_back();
    slab_rows_.pop_back();
  }
  if (asked > 0) {
    const size_t before = (slabs_.size() - 1) * slab_bytes();
    const size_t end = std::min(asked_bytes_ - before, slab_bytes());
    slabs_.back().Release(first_byte_ + asked - before, end - (asked - before));
  }
  asked_bytes_ = asked;
}

size_t RowStore::CountChanged(int64_t since) const {
  if (since < 0) return num_rows();
  size_t rows = 0;
  index_.ForEach([&](const RowSlot& slot) { rows += ChangedAfter(since, slot.version) ? 1 : 0; });
  return rows;
}

void RowStore::SmallestKeys(Key first, size_t count, std::vector<Key>* keys, int64_t since) const {
  keys->clear();
  Key last = std::numeric_limits<Key>::max();
  const auto keep_smallest = [&] {
    std::nth_element(keys->begin(), keys->begin() + static_cast<std::ptrdiff_t>(count) - 1,
                     keys->end());
    keys->resize(count);
    last = keys->back();
  };
  index_.ForEach([&](const RowSlot& slot) {
    if (slot.key < first || slot.key > last || !ChangedAfter(since, slot.version)) return;
    keys->push_back(slot.key);
    if (keys->size() >= 2 * count) keep_smallest();
  });
  if (keys->size() > count) keep_smallest();
  std::sort(keys->begin(), keys->end());
}

}  // namespace hdps
