// Slabs, row numbers, and keys in order.
#include "embedding/row_store.h"

#include <glog/logging.h>

#include <bit>

namespace hdps {
namespace {

// Address space taken at a time; its pages are there once they are used.
constexpr size_t kSlabBytes = size_t{64} << 20;
constexpr size_t kPageBytes = 4096;

// The distance of two rows: whole lines, or else 16 bytes, where that adds an eighth at most.
size_t StrideOf(size_t row_bytes) {
  for (const size_t unit : {size_t{64}, size_t{16}}) {
    const size_t rounded = (row_bytes + unit - 1) / unit * unit;
    if (rounded - row_bytes <= row_bytes / 8) return rounded;
  }
  return row_bytes;
}

}  // namespace

RowStore::RowStore(size_t row_bytes, uint64_t salt)
    : row_bytes_(row_bytes),
      stride_(StrideOf(row_bytes)),
      slab_shift_(std::bit_width(std::max<size_t>(1, kSlabBytes / stride_)) - 1),
      slab_mask_((size_t{1} << slab_shift_) - 1),
      index_(salt) {
  CHECK_GT(row_bytes, 0u);
  CHECK_EQ(row_bytes % sizeof(float), 0u);
}

size_t RowStore::bytes() const {
  const size_t slab_bytes = (slab_mask_ + 1) * stride_;
  const size_t whole = slabs_.empty() ? 0 : (slabs_.size() - 1) * slab_bytes;
  return index_.bytes() + whole + asked_bytes_ + free_.capacity() * sizeof(uint32_t);
}

uint32_t RowStore::NewRow() {
  if (!free_.empty()) {
    const uint32_t row = free_.back();
    free_.pop_back();
    return row;
  }
  CHECK_LT(made_, kRowVersionMax - 1) << "rows in one slice; give the job more shards";
  const size_t in_slab = made_ & slab_mask_;
  if (in_slab == 0) {
    slabs_.emplace_back((slab_mask_ + 1) * stride_);
    asked_bytes_ = 0;
  }
  if ((in_slab + 1) * stride_ > asked_bytes_) NewPiece();
  return made_++;
}

// The pages of the next rows. A small slice takes small pages, one at a time.
void RowStore::NewPiece() {
  PageMemory& slab = slabs_.back();
  const size_t needed = ((made_ & slab_mask_) + 1) * stride_;
  const bool small = slabs_.size() == 1 && needed <= kHugePageBytes;
  const size_t unit = small ? kPageBytes : kHugePageBytes;
  const size_t end = std::min((needed + unit - 1) / unit * unit, slab.size());
  if (!small) slab.AskForHugePages(asked_bytes_, end - asked_bytes_);
  asked_bytes_ = end;
}

bool RowStore::Erase(Key key) {
  RowSlot* const slot = index_.Find(key, index_.Home(key));
  if (!slot->used()) return false;
  free_.push_back(slot->row());
  index_.Erase(slot);
  return true;
}

void RowStore::SmallestKeys(Key first, size_t count, std::vector<Key>* keys) const {
  keys->clear();
  Key last = std::numeric_limits<Key>::max();
  const auto keep_smallest = [&] {
    std::nth_element(keys->begin(), keys->begin() + static_cast<std::ptrdiff_t>(count) - 1,
                     keys->end());
    keys->resize(count);
    last = keys->back();
  };
  index_.ForEach([&](const RowSlot& slot) {
    if (slot.key < first || slot.key > last) return;
    keys->push_back(slot.key);
    if (keys->size() >= 2 * count) keep_smallest();
  });
  if (keys->size() > count) keep_smallest();
  std::sort(keys->begin(), keys->end());
}

}  // namespace hdps
