// Between the tiers: what is missing comes back in one read, what is cold leaves in one write.
#include "embedding/tiered_rows.h"

#include <glog/logging.h>

#include <cstring>

namespace hdps {
namespace {

// A small share is taken in small pieces, so that little of it lies idle.
constexpr size_t kSmallPieceBytes = 64 << 10;
constexpr int kFetchTriesMax = 3;
constexpr size_t kSweepHomes = 16;
constexpr uint64_t kFilterSalt = 0x51c3e8a70d96b24fu;
// Of a filter that holds so many keys for nothing, and more than those it needs, a new one is made.
constexpr uint64_t kErasedMin = 4096;

}  // namespace

TieredRows::TieredRows(size_t row_bytes, uint64_t salt, TableId table, const RowHome& home,
                       bool spills)
    : store_(row_bytes, salt, home.memory == nullptr ? kHugePageBytes : kSmallPieceBytes,
             spills && home.memory != nullptr),
      memory_(home.memory),
      spills_(spills && home.memory != nullptr),
      space_{home.shard, table, static_cast<uint32_t>(row_bytes + sizeof(uint32_t))},
      filter_(kFilterSalt) {
  if (memory_ != nullptr) memory_->Add(this);
}

TieredRows::~TieredRows() {
  if (memory_ == nullptr) return;
  if (disk_used_) {
    const Status erased = memory_->disk().EraseAll(space_);
    if (!erased.ok()) LOG(WARNING) << erased.message();
  }
  memory_->Remove(this);
}

size_t TieredRows::FindMissing(std::span<const Key> keys, bool make) {
  missing_.clear();
  store_.ForEachFound(keys, store_.row_bytes(),
                      [&](size_t k, const RowSlot* slot, const std::byte*) {
                        if (slot != nullptr) return;
                        missing_.push_back(keys[k]);
                        filter_.Prefetch(keys[k]);
                      });
  const size_t absent = missing_.size();
  std::erase_if(missing_, [this](Key key) { return !filter_.MayHave(key); });
  std::ranges::sort(missing_);
  missing_.erase(std::unique(missing_.begin(), missing_.end()), missing_.end());
  return make ? absent : missing_.size();
}

void TieredRows::Fetch(std::span<const Key> keys, bool make) {
  if (rows_on_disk_ == 0 && (!make || memory_->HasRoom(*this, keys.size(), keys.size()))) return;
  // Making room may move out some of the very rows: then they are missing too.
  size_t rows = FindMissing(keys, make);
  for (int tries = 0; tries < kFetchTriesMax && rows > 0; ++tries) {
    if (memory_->HasRoom(*this, rows, keys.size())) break;
    memory_->MakeRoom(*this, rows, keys.size());
    rows = FindMissing(keys, make);
  }
  if (rows_on_disk_ > 0 && !missing_.empty()) ReadMissing();
}

void TieredRows::ReadMissing() {
  bytes_.resize(missing_.size() * space_.row_bytes);
  found_.resize(missing_.size());
  const Status read = memory_->disk().Get(space_, missing_, bytes_, found_);
  if (!read.ok()) return memory_->Fail(read);
  for (size_t k = 0; k < missing_.size(); ++k) {
    if (found_[k] == 0) continue;
    const std::byte* row = &bytes_[k * space_.row_bytes];
    uint32_t version;
    std::memcpy(&version, row + store_.row_bytes(), sizeof(version));
    std::memcpy(store_.Insert(missing_[k], version), row, store_.row_bytes());
    --rows_on_disk_;
    ++rows_fetched_;
  }
  memory_->Tell();
}

// Each pass of the hand counts a row's uses down by one; who has none left goes.
void TieredRows::ChooseCold(size_t rows) {
  cold_.clear();
  rows = std::min(rows, store_.num_rows());
  // In fewer rounds than a chosen row, whose uses are full again, could come up a second time.
  const size_t rounds_max = RowSlot::kUsesMax;
  for (size_t seen = 0; cold_.size() < rows && seen < rounds_max * store_.num_rows();) {
    store_.Sweep(&hand_, kSweepHomes, [&](RowSlot& slot) {
      ++seen;
      if (slot.uses > 0) {
        slot.uses -= 1;
        return;
      }
      slot.uses = RowSlot::kUsesMax;
      cold_.push_back({slot.key, slot.row(), slot.version, slot.dirty != 0});
    });
  }
  std::ranges::sort(cold_, {}, &ColdRow::key);
}

void TieredRows::Spill(size_t rows) {
  ChooseCold(rows);
  written_.clear();
  bytes_.clear();
  for (const ColdRow& cold : cold_) {
    if (!cold.dirty) continue;  // The disk has it as it is.
    written_.push_back(cold.key);
    const std::byte* row = store_.Row(cold.row);
    const auto* version = reinterpret_cast<const std::byte*>(&cold.version);
    bytes_.insert(bytes_.end(), row, row + store_.row_bytes());
    bytes_.insert(bytes_.end(), version, version + sizeof(cold.version));
  }
  if (!written_.empty()) {
    const Status put = memory_->disk().Put(space_, written_, bytes_);
    if (!put.ok()) return memory_->Fail(put);
    disk_used_ = true;
    for (const Key key : written_) filter_.Prefetch(key);
    for (const Key key : written_) filter_.Add(key);
  }
  for (const ColdRow& cold : cold_) store_.Erase(cold.key);
  rows_on_disk_ += cold_.size();
}

void TieredRows::Erase(std::span<const Key> keys) {
  for (const Key key : keys) {
    if (!store_.Erase(key)) --rows_on_disk_;
  }
  if (!disk_used_) return;
  const Status erased = memory_->disk().Erase(space_, keys);
  if (!erased.ok()) return memory_->Fail(erased);
  erased_ += keys.size();
  if (erased_ > kErasedMin && erased_ > filter_.size() / 2) RebuildFilter();
}

void TieredRows::RebuildFilter() {
  filter_.Clear();
  erased_ = 0;
  const Status scanned = memory_->disk().Scan(space_, [this](Key key, std::span<const std::byte>) {
    filter_.Add(key);
    return true;
  });
  if (!scanned.ok()) memory_->Fail(scanned);
}

Status TieredRows::ForEach(const Visit& visit) const {
  Status status;
  store_.ForEach([&](const RowSlot& slot) {
    if (status.ok()) status = visit(slot.key, {store_.Row(slot.row()), store_.row_bytes()});
  });
  if (!status.ok() || rows_on_disk_ == 0) return status;
  HDPS_RETURN_IF_ERROR(memory_->disk().Scan(space_, [&](Key key, std::span<const std::byte> row) {
    if (store_.Find(key) == nullptr) status = visit(key, row.first(store_.row_bytes()));
    return status.ok();
  }));
  return status;
}

void TieredRows::VisitAll(
    const std::function<void(Key key, std::span<const std::byte> row)>& visit) {
  const Status status = ForEach([&](Key key, std::span<const std::byte> row) {
    visit(key, row);
    return Status();
  });
  if (!status.ok()) memory_->Fail(status);
}

Status TieredRows::ForEachInOrder(const Visit& visit) const {
  constexpr size_t kSortedKeysMax = size_t{1} << 20, kAhead = 16;
  std::vector<Key> keys;
  size_t next = 0, visited = 0;
  Key last_visited = 0;
  // The rows in memory up to `last`.
  const auto visit_memory = [&](Key last) -> Status {
    for (;; ++next, ++visited) {
      if (next == keys.size()) {
        if (visited == store_.num_rows()) return {};
        store_.SmallestKeys(keys.empty() ? 0 : keys.back() + 1, kSortedKeysMax, &keys);
        next = 0;
      }
      if (keys[next] > last) return {};
      if (next + kAhead < keys.size()) store_.PrefetchSlot(keys[next + kAhead]);
      const RowSlot* slot = store_.Find(keys[next]);
      HDPS_RETURN_IF_ERROR(visit(keys[next], {store_.Row(slot->row()), store_.row_bytes()}));
      last_visited = keys[next];
    }
  };
  Status status;
  if (rows_on_disk_ > 0) {
    HDPS_RETURN_IF_ERROR(memory_->disk().Scan(space_, [&](Key key, std::span<const std::byte> row) {
      status = visit_memory(key);
      const bool copy = visited > 0 && last_visited == key;  // Of a row in memory.
      if (status.ok() && !copy) status = visit(key, row.first(store_.row_bytes()));
      return status.ok();
    }));
    HDPS_RETURN_IF_ERROR(status);
  }
  return visit_memory(std::numeric_limits<Key>::max());
}

}  // namespace hdps
