// Keeps rows before they change, and merges them with those that did not.
#include "embedding/rows_at_save.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "embedding/memory/row_store.h"
#include "embedding/tiered_rows.h"

namespace hdps {
namespace {

constexpr Key kLastKey = std::numeric_limits<Key>::max();

uint32_t VersionBehind(std::span<const std::byte> row) {
  uint32_t version;
  std::memcpy(&version, &row[row.size() - sizeof(version)], sizeof(version));
  return version;
}

}  // namespace

RowsAtSave::RowsAtSave(TieredRows& rows, std::shared_ptr<Mutex> gate, const DiskSpace& space,
                       Bounds bounds, uint64_t num_rows)
    : gate_(std::move(gate)),
      bounds_(bounds),
      num_rows_(num_rows),
      rows_(&rows),
      kept_(std::make_unique<DiskRows>(&rows.disk_store(), space,
                                       rows.memory().row_bytes() + sizeof(uint32_t))) {}

RowsAtSave::~RowsAtSave() {
  MutexLock lock(*gate_);
  if (rows_ != nullptr) rows_->SaveEnded();
  kept_.reset();
}

void RowsAtSave::End(const Status& why) {
  if (rows_ == nullptr) return;
  ended_ = why;
  std::exchange(rows_, nullptr)->SaveEnded();
  kept_.reset();
}

bool RowsAtSave::Holds(uint32_t version) const {
  return ChangedAfter(bounds_.since, version) && !ChangedAfter(bounds_.clock, version);
}

void RowsAtSave::Add(Key key, uint32_t version, std::span<const std::byte> row) {
  const auto* const behind = reinterpret_cast<const std::byte*>(&version);
  added_.push_back({key, bytes_.size()});
  bytes_.insert(bytes_.end(), row.begin(), row.end());
  bytes_.insert(bytes_.end(), behind, behind + sizeof(version));
}

Status RowsAtSave::PutAdded() {
  std::ranges::sort(added_, {}, &Added::key);
  const auto same = [](const Added& a, const Added& b) { return a.key == b.key; };
  added_.erase(std::unique(added_.begin(), added_.end(), same), added_.end());
  const size_t row_bytes = rows_->memory().row_bytes() + sizeof(uint32_t);
  std::vector<Key> keys;
  std::vector<std::byte> rows;
  keys.reserve(added_.size());
  rows.reserve(added_.size() * row_bytes);
  for (const auto& [key, begin] : added_) {
    const auto row = bytes_.begin() + static_cast<ptrdiff_t>(begin);
    keys.push_back(key);
    rows.insert(rows.end(), row, row + static_cast<ptrdiff_t>(row_bytes));
  }
  added_.clear();
  bytes_.clear();
  return kept_->Put(keys, rows);
}

Status RowsAtSave::Keep(std::span<const Key> keys) {
  const RowStore& memory = rows_->memory();
  memory.ForEachFound(keys, memory.row_bytes(),
                      [&](size_t k, const RowSlot* slot, const std::byte* row) {
                        if (slot == nullptr || !Holds(slot->version)) return;
                        Add(keys[k], slot->version, {row, memory.row_bytes()});
                      });
  return PutAdded();
}

void RowsAtSave::AddFromDisk(Key key, std::span<const std::byte> row) {
  const uint32_t version = VersionBehind(row);
  if (Holds(version)) Add(key, version, row.first(row.size() - sizeof(version)));
}

Status RowsAtSave::Reader::Read(size_t rows, const Visit& visit) {
  while (rows > 0 && !ended_) {
    MutexLock lock(*save_->gate_);
    HDPS_RETURN_IF_ERROR(ReadSome(&rows, visit));
  }
  return {};
}

// Rows may have moved from one tier to the other since the last call, and were kept: so each call
// looks anew for what follows the last key, in all three places.
Status RowsAtSave::Reader::ReadSome(size_t* rows, const Visit& visit) {
  if (save_->rows_ == nullptr) return save_->ended_;
  if (!spilled_) {
    spilled_.emplace(save_->rows_->disk(), save_->bounds_.from);
    kept_.emplace(*save_->kept_, 0);
  }
  const RowStore& memory = save_->rows_->memory();
  const size_t keys_max = std::max(*rows, memory.num_rows() / 16);
  memory.SmallestKeys(next_, keys_max, &in_memory_, save_->bounds_.since);
  const Key last = in_memory_.size() < keys_max ? kLastKey : in_memory_.back();
  HDPS_RETURN_IF_ERROR(spilled_->Seek(next_));
  HDPS_RETURN_IF_ERROR(kept_->Seek(next_));
  const auto show = [&](Key key, std::span<const std::byte> row) {
    if (!save_->Holds(VersionBehind(row))) return;
    visit(key, row.first(memory.row_bytes()));
    --*rows;
  };
  for (size_t m = 0; *rows > 0;) {
    const Key key = std::min({m < in_memory_.size() ? in_memory_[m] : kLastKey,
                              spilled_->ended() ? kLastKey : spilled_->key(),
                              kept_->ended() ? kLastKey : kept_->key()});
    const bool here = m < in_memory_.size() && in_memory_[m] == key;
    const bool on_disk = !spilled_->ended() && spilled_->key() == key;
    const bool kept = !kept_->ended() && kept_->key() == key;
    if ((!here && !on_disk && !kept) || key > last) {
      ended_ = last == kLastKey;
      next_ = ended_ ? next_ : last + 1;
      return {};
    }
    if (here) {
      const RowSlot& slot = *memory.Find(key);
      if (save_->Holds(slot.version)) {
        visit(key, {memory.Row(slot.row()), memory.row_bytes()});
        --*rows;
      }
      ++m;
    }
    if (on_disk) {
      show(key, spilled_->row());
      HDPS_RETURN_IF_ERROR(spilled_->Next());
    }
    if (kept) {
      show(key, kept_->row());
      HDPS_RETURN_IF_ERROR(kept_->Next());
    }
    ended_ = key == kLastKey;
    next_ = ended_ ? key : key + 1;
    if (ended_) return {};
  }
  return {};
}

}  // namespace hdps
