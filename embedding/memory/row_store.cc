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

// Returns how many of `most` bytes are taken early when rows end at `end`: in proportion to `end`
// up to 4 pieces, so that few rows do not take much.
size_t Ahead(size_t most, size_t piece, size_t end) {
  const size_t grown = 4 * piece;  // A power of two: this runs for each new row.
  return most * std::min(end, grown) >> std::countr_zero(grown);
}

// Returns the bytes from one row to the next: a multiple of 64, or else of 16, if that adds at most
// an eighth.
size_t StrideOf(size_t row_bytes) {
  for (const size_t unit : {size_t{64}, size_t{16}}) {
    const size_t rounded = (row_bytes + unit - 1) / unit * unit;
    if (rounded - row_bytes <= row_bytes / 8) return rounded;
  }
  return row_bytes;
}

}  // namespace

RowStore::RowStore(size_t row_bytes, uint64_t salt, size_t piece_bytes, bool counts_changes,
                   uint32_t turn)
    : row_bytes_(row_bytes),
      stride_(StrideOf(row_bytes)),
      slab_shift_(std::bit_width(std::max<size_t>(1, kSlabBytes / stride_)) - 1),
      slab_mask_((size_t{1} << slab_shift_) - 1),
      piece_bytes_(piece_bytes),
      ahead_bytes_(static_cast<size_t>(static_cast<double>(piece_bytes) * SpreadPoint(turn))),
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
  const size_t wanted = Wanted((size_t{made_} + 1) * stride_);
  if (wanted > asked_bytes_) AskUpTo(PieceEnd(wanted));
  return made_++;
}

size_t RowStore::Wanted(size_t end) const {
  const size_t wanted = end + Ahead(ahead_bytes_, piece_bytes_, end);
  return wanted > piece_bytes_ ? wanted : end;
}

// A small slice takes small pages, one at a time.
size_t RowStore::PieceEnd(size_t wanted) const {
  const size_t before = (wanted - 1) / slab_bytes() * slab_bytes();
  const size_t end = RoundUp(wanted - before, wanted > piece_bytes_ ? piece_bytes_ : kPageBytes);
  return before + std::min(end, slab_bytes());
}

void RowStore::AskUpTo(size_t end) {
  while (asked_bytes_ < end) {
    const size_t begin = asked_bytes_ % slab_bytes();
    if (begin == 0) slabs_.emplace_back(slab_bytes());
    PageMemory& slab = slabs_.back();
    const size_t bytes = std::min(end - asked_bytes_, slab_bytes() - begin);
    if (end > piece_bytes_ && piece_bytes_ == kHugePageBytes) {
      // Asks once for the rest of the slab, not for each piece: madvise waits for all threads that
      // are touching pages of the process.
      if (begin <= kHugePageBytes) slab.AskForHugePages(begin, slab_bytes() - begin);
      slab.Touch(begin, bytes);
    }
    asked_bytes_ += bytes;
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
  const size_t bytes = rows * StrideOf(row_bytes);
  if (bytes == 0) return RowIndex::PredictBytes(rows);
  const size_t piece = kHugePageBytes, end = RoundUp(bytes, piece);
  const size_t usual = bytes <= piece ? RoundUp(bytes, kPageBytes) : end;
  // Some stores, depending on their turn, have already allocated the next piece.
  const size_t wanted = bytes + Ahead(piece, piece, bytes);
  const double early =
      static_cast<double>(wanted - std::min(wanted, end)) / static_cast<double>(wanted - bytes);
  const auto pieces = usual + static_cast<size_t>(early * static_cast<double>(end + piece - usual));
  return pieces + RowIndex::PredictBytes(rows);
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
  const size_t wanted = Wanted((made_ + rows - free_.size()) * stride_);
  return wanted <= asked_bytes_ ? bytes : bytes + PieceEnd(wanted) - asked_bytes_;
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
  while (!slabs_.empty() && (slabs_.size() - 1) * slab_bytes() >= asked) slabs_.pop_back();
  if (asked > 0) {
    const size_t before = (slabs_.size() - 1) * slab_bytes();
    const size_t end = std::min(asked_bytes_ - before, slab_bytes());
    slabs_.back().Release(asked - before, end - (asked - before));
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
