// Two lines a key, the emptier one taken; tables that never move.
#include "embedding/disk_index.h"

#include <bit>

namespace hdps {

uint32_t* DiskIndex::Find(Key key, uint64_t block) const {
  const Place place = PlaceOf(key);
  const uint32_t slot = place.mark << kBlockBits | (static_cast<uint32_t>(block) & kBlockMask);
  // The last table has the most.
  for (size_t t = tables_.size(); t-- > 0;) {
    for (uint32_t* line : {tables_[t].Line(place.line), tables_[t].Line(place.other)}) {
      const uint32_t found = EqualIn(line, 0, slot);
      if (found != 0) return line + std::countr_zero(found);
    }
  }
  return nullptr;
}

bool DiskIndex::Has(Key key, uint64_t block) const { return Find(key, block) != nullptr; }

bool DiskIndex::Remove(Key key, uint64_t block) {
  uint32_t* const slot = Find(key, block);
  if (slot == nullptr) return false;
  *slot = 0;
  --size_;
  return true;
}

bool DiskIndex::AddTo(const Table& table, const Place& place, uint32_t slot) {
  uint32_t* const lines[2] = {table.Line(place.line), table.Line(place.other)};
  const uint32_t empty[2] = {MarkedIn(lines[0], 0), MarkedIn(lines[1], 0)};
  const int l = std::popcount(empty[0]) >= std::popcount(empty[1]) ? 0 : 1;
  if (empty[l] == 0) return false;
  lines[l][std::countr_zero(empty[l])] = slot;
  return true;
}

void DiskIndex::Add(Key key, uint64_t block) {
  const Place place = PlaceOf(key);
  const uint32_t slot = place.mark << kBlockBits | (static_cast<uint32_t>(block) & kBlockMask);
  ++size_;
  for (size_t t = tables_.size(); t-- > 0;) {
    if (AddTo(tables_[t], place, slot)) return;
  }
  Grow();
  AddTo(tables_.back(), place, slot);
}

void DiskIndex::Grow() {
  Table table;
  const int bits = kFirstLineBits + (tables_.empty() ? 0 : static_cast<int>(tables_.size()) - 1);
  table.shift = 32 - bits;
  table.memory = PageMemory((size_t{1} << bits) * kLineBytes);
  bytes_ += table.memory.size();
  tables_.push_back(std::move(table));
}

void DiskIndex::Clear() {
  tables_.clear();
  size_ = bytes_ = 0;
}

}  // namespace hdps
