// Moves rows between the tiers: missing rows come back in one read, cold rows leave in one write.
#include "embedding/tiered_rows.h"

#include <glog/logging.h>

#include <cstring>
#include <string>

namespace hdps {
namespace {

// A small share is taken in small pieces, so that little memory is idle.
constexpr size_t kSmallPieceBytes = 64 << 10;
constexpr int kFetchTriesMax = 3;
constexpr size_t kSweepHomes = 16;

}  // namespace

TieredRows::TieredRows(size_t row_bytes, uint64_t salt, TableId table, const RowPlacement& home,
                       bool spills)
    : store_(row_bytes, salt, home.memory == nullptr ? kHugePageBytes : kSmallPieceBytes,
             spills && home.memory != nullptr, home.shard.value),
      memory_(home.memory),
      spills_(spills && home.memory != nullptr),
      rows_max_(home.rows_max),
      disk_(spills_ ? &memory_->disk() : nullptr, {home.shard, table},
            row_bytes + sizeof(uint32_t)),
      kept_space_{home.shard, {table.value | kTablesMax}} {
  CHECK(!spills_ || table.value < kTablesMax) << "table " << table.value << " under a limit";
  if (memory_ != nullptr) memory_->Add(this);
}

TieredRows::~TieredRows() {
  if (memory_ == nullptr) return;
  memory_->Remove(this);
  const std::shared_ptr<Mutex> gate = memory_->gate();
  MutexLock lock(*gate);
  if (at_save_ != nullptr) {
    at_save_->End({Code::kUnavailable, "the rows were dropped before they were written"});
  }
}

bool TieredRows::NumbersSuffice(size_t rows) {
  if (store_.HasNumbersFor(rows, rows_max_)) return true;
  Fail({Code::kResourceExhausted, "a shard of a table holds " + std::to_string(store_.num_rows()) +
                                      " rows in memory, and at most " + std::to_string(rows_max_) +
                                      " can be there; give the job more cluster.shards"});
  return false;
}

size_t TieredRows::FindMissing(std::span<const Key> keys, bool make) {
  missing_.clear();
  store_.ForEachFound(keys, store_.row_bytes(),
                      [&](size_t k, const RowSlot* slot, const std::byte*) {
                        if (slot != nullptr) return;
                        missing_.push_back(keys[k]);
                        disk_.Prefetch(keys[k]);
                      });
  const size_t absent = missing_.size();
  std::erase_if(missing_, [this](Key key) { return !disk_.MayHave(key); });
  std::ranges::sort(missing_);
  missing_.erase(std::unique(missing_.begin(), missing_.end()), missing_.end());
  return make ? absent : missing_.size();
}

void TieredRows::Fetch(std::span<const Key> keys, bool make) {
  if (disk_.size() == 0 && (!make || memory_->HasRoom(*this, keys.size(), keys.size()))) return;
  // Making room may move out rows of `keys`; they are missing then, too.
  size_t rows = FindMissing(keys, make);
  for (int tries = 0; tries < kFetchTriesMax && rows > 0; ++tries) {
    if (memory_->HasRoom(*this, rows, keys.size())) break;
    memory_->MakeRoom(*this, rows, keys.size());
    rows = FindMissing(keys, make);
  }
  if (disk_.size() > 0 && !missing_.empty()) ReadMissing();
}

void TieredRows::ReadMissing() {
  if (!NumbersSuffice(missing_.size())) return;
  const Status read = disk_.Take(missing_, [this](Key key, std::span<const std::byte> row) {
    uint32_t version;
    std::memcpy(&version, row.data() + store_.row_bytes(), sizeof(version));
    std::memcpy(store_.Insert(key, version), row.data(), store_.row_bytes());
    ++rows_fetched_;
  });
  if (!read.ok()) return memory_->Fail(read);
  memory_->ReportBytes();
}

// Each pass of the hand counts a row's uses down by one; a row at zero is chosen.
std::vector<TieredRows::EvictionVictim> TieredRows::ChooseVictims(size_t rows) {
  std::vector<EvictionVictim> chosen;
  rows = std::min(rows, store_.num_rows());
  // Fewer rounds than would choose a row twice: a chosen row's uses are set to the maximum.
  const size_t rounds_max = RowSlot::kUsesMax;
  for (size_t seen = 0; chosen.size() < rows && seen < rounds_max * store_.num_rows();) {
    store_.Sweep(&hand_, kSweepHomes, [&](RowSlot& slot) {
      ++seen;
      if (slot.uses > 0) {
        slot.uses -= 1;
        return;
      }
      slot.uses = RowSlot::kUsesMax;
      chosen.push_back({slot.key, slot.row(), slot.version});
    });
  }
  std::ranges::sort(chosen, {}, &EvictionVictim::key);
  return chosen;
}

void TieredRows::Spill(size_t rows) {
  const std::vector<EvictionVictim> chosen = ChooseVictims(rows);
  // These vectors are not kept: all slices together would take as much again.
  std::vector<Key> keys;
  std::vector<std::byte> bytes;
  keys.reserve(chosen.size());
  bytes.reserve(chosen.size() * (store_.row_bytes() + sizeof(uint32_t)));
  constexpr size_t kPrefetch = 8;
  for (size_t c = 0; c < chosen.size(); ++c) {
    if (c + kPrefetch < chosen.size()) __builtin_prefetch(store_.Row(chosen[c + kPrefetch].row));
    const EvictionVictim& victim = chosen[c];
    const std::byte* row = store_.Row(victim.row);
    const auto* version = reinterpret_cast<const std::byte*>(&victim.version);
    keys.push_back(victim.key);
    bytes.insert(bytes.end(), row, row + store_.row_bytes());
    bytes.insert(bytes.end(), version, version + sizeof(victim.version));
    store_.Erase(victim.key);
  }
  const Status put = disk_.Put(keys, bytes);
  if (!put.ok()) memory_->Fail(put);
}

void TieredRows::Erase(std::span<const Key> keys) {
  if (!spills_) {
    for (const Key key : keys) store_.Erase(key);
    return;
  }
  MutexLock lock(*memory_->gate());
  KeepForSave(keys);
  missing_.clear();
  for (const Key key : keys) {
    if (!store_.Erase(key)) missing_.push_back(key);
  }
  if (missing_.empty()) return;
  const Status taken = disk_.Take(missing_, [this](Key key, std::span<const std::byte> row) {
    if (at_save_ != nullptr) at_save_->AddFromDisk(key, row);
  });
  if (!taken.ok()) return memory_->Fail(taken);
  KeepForSave({});
}

std::shared_ptr<RowsAtSave> TieredRows::BeginSave(int64_t clock, int64_t since) {
  if (!spills_ || clock >= kRowVersionMax) return nullptr;
  const Result<uint64_t> num_rows = CountChanged(since);
  if (!num_rows.ok()) return nullptr;
  MutexLock lock(*memory_->gate());
  if (at_save_ != nullptr) {
    // Tables that share rows share their save.
    return at_save_->IsOf(clock, since) ? at_save_->weak_from_this().lock() : nullptr;
  }
  // Rows that were stored at this clock count as changed behind it, and a save would lack them.
  if (newest_ > clock || (since >= 0 && newest_at_mark_ > since)) return nullptr;
  const RowsAtSave::Bounds bounds{clock, since, since < 0 ? 0 : disk_mark_};
  auto save = std::make_shared<RowsAtSave>(*this, memory_->gate(), kept_space_, bounds, *num_rows);
  at_save_ = save.get();
  return save;
}

void TieredRows::OnChange(int64_t step) {
  if (!spills_) return;
  MutexLock lock(*memory_->gate());
  newest_ = std::max(newest_, step);
  if (at_save_ == nullptr || !at_save_->IsBefore(step)) return;
  at_save_->End({Code::kIoError, "rows were changed as of step " + std::to_string(step) +
                                     ", before that of the save"});
}

void TieredRows::KeepForSave(std::span<const Key> keys) {
  if (at_save_ == nullptr) return;
  const Status kept = at_save_->Keep(keys);
  if (!kept.ok()) memory_->Fail(kept);
  kept_bytes_ = at_save_->bytes();
}

Status TieredRows::ForEach(const Visit& visit) const {
  Status status;
  store_.ForEach([&](const RowSlot& slot) {
    if (status.ok()) status = visit(slot.key, {store_.Row(slot.row()), store_.row_bytes()});
  });
  HDPS_RETURN_IF_ERROR(status);
  return disk_.ForEach([&](Key key, std::span<const std::byte> row) {
    return visit(key, row.first(store_.row_bytes()));
  });
}

void TieredRows::VisitAll(
    const std::function<void(Key key, std::span<const std::byte> row)>& visit) {
  const Status status = ForEach([&](Key key, std::span<const std::byte> row) {
    visit(key, row);
    return Status();
  });
  if (!status.ok()) memory_->Fail(status);
}

DiskRows::Visit TieredRows::VisitOnDisk(int64_t since, const Visit& visit) const {
  return [this, since, &visit](Key key, std::span<const std::byte> row) {
    uint32_t version;
    std::memcpy(&version, row.data() + store_.row_bytes(), sizeof(version));
    return ChangedAfter(since, version) ? visit(key, row.first(store_.row_bytes())) : Status();
  };
}

Result<uint64_t> TieredRows::CountChanged(int64_t since) const {
  if (since < 0) return num_rows();
  uint64_t rows = store_.CountChanged(since);
  const Visit count = [&rows](Key, std::span<const std::byte>) {
    ++rows;
    return Status();
  };
  HDPS_RETURN_IF_ERROR(disk_.ForEach(VisitOnDisk(since, count), disk_mark_));
  return rows;
}

std::vector<KeyedRow> TieredRows::RowsInOrder(int64_t since) const {
  CHECK_EQ(rows_on_disk(), 0u);
  std::vector<KeyedRow> rows;
  store_.ForEach([&](const RowSlot& slot) {
    if (ChangedAfter(since, slot.version)) rows.push_back({slot.key, store_.Row(slot.row())});
  });
  SortByKey(&rows);
  return rows;
}

Status TieredRows::ForEachInOrder(const Visit& visit, int64_t since) const {
  constexpr size_t kSortedKeysMax = size_t{1} << 20, kPrefetch = 16;
  std::vector<Key> keys;
  size_t next = 0;
  bool no_more = false;  // True: no key follows those in `keys`.
  // Visits the rows in memory up to `last`.
  const auto visit_memory = [&](Key last) -> Status {
    for (;; ++next) {
      if (next == keys.size()) {
        if (no_more) return {};
        store_.SmallestKeys(keys.empty() ? 0 : keys.back() + 1, kSortedKeysMax, &keys, since);
        next = 0;
        no_more = keys.size() < kSortedKeysMax || keys.back() == std::numeric_limits<Key>::max();
        if (keys.empty()) return {};
      }
      if (keys[next] > last) return {};
      if (next + kPrefetch < keys.size()) store_.PrefetchSlot(keys[next + kPrefetch]);
      const RowSlot* slot = store_.Find(keys[next]);
      HDPS_RETURN_IF_ERROR(visit(keys[next], {store_.Row(slot->row()), store_.row_bytes()}));
    }
  };
  const Visit visit_both = [&](Key key, std::span<const std::byte> row) {
    const Status status = visit_memory(key);
    return status.ok() ? visit(key, row) : status;
  };
  HDPS_RETURN_IF_ERROR(
      disk_.ForEachInOrder(VisitOnDisk(since, visit_both), since < 0 ? 0 : disk_mark_));
  return visit_memory(std::numeric_limits<Key>::max());
}

}  // namespace hdps
