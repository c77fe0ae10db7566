// A slice's rows in two tiers: rows in use are in memory, the rest on disk.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "embedding/disk/disk_rows.h"
#include "embedding/memory/key_order.h"
#include "embedding/memory/row_store.h"
#include "embedding/rows_at_save.h"
#include "embedding/shard_memory.h"

namespace hdps {

// A RowStore with a disk behind it. Reading or changing rows brings them into memory, and moves
// others out if there is no room: the rows changed least, as a clock's hand finds them.
//
// Invariant: each row is in one tier; bytes of it that are left in blocks of the other count no
// more. Which tier a row is in changes nothing else.
class TieredRows {
 public:
  // Limit of a job's tables under a memory limit. Rows that are kept for a save lie on disk as
  // those of the table whose number is this much higher.
  static constexpr uint32_t kTablesMax = 1 << 15;

  // `spills`: rows may leave memory if the home has a disk.
  TieredRows(size_t row_bytes, uint64_t salt, TableId table, const RowPlacement& home, bool spills);
  ~TieredRows();
  TieredRows(const TieredRows&) = delete;
  TieredRows& operator=(const TieredRows&) = delete;

  const RowStore& memory() const { return store_; }
  size_t num_rows() const { return store_.num_rows() + disk_.size(); }
  size_t rows_in_memory() const { return store_.num_rows(); }
  size_t rows_on_disk() const { return disk_.size(); }  // None of them in memory too.
  uint64_t rows_fetched() const { return rows_fetched_; }
  // Memory of rows and index, and of what finds rows that are kept for a save.
  size_t bytes() const { return store_.bytes() + disk_.bytes() + kept_bytes_; }

  // Is not ok once a limit was hit: rows may be missing or old from then on. Keeps the first
  // failure.
  const Status& failure() const { return failure_; }
  void Fail(const Status& status) { failure_ = failure_.ok() ? status : failure_; }

  // Calls use(begin, part, rows in memory) for consecutive parts of `keys`; `part` is keys from
  // `begin` on, and those that have a row have it in memory then. `make`: also makes room for a new
  // row of each key in the part; if row numbers run out, the remaining parts are left out and
  // failure() says so.
  template <typename Use>
  void InParts(std::span<const Key> keys, bool make, const Use& use) {
    if (!spills_) {
      if (keys.empty() || (make && !NumbersSuffice(keys.size()))) return;
      use(size_t{0}, keys, store_);
      return;
    }
    for (size_t begin = 0; begin < keys.size();) {
      MutexLock lock(*memory_->gate());
      const auto part = keys.subspan(begin, std::min(keys.size() - begin, KeysAtOnce()));
      Fetch(part, make);
      if (make && !NumbersSuffice(part.size())) return;
      if (make) KeepForSave(part);
      use(begin, part, store_);
      if (make) memory_->ReportBytes();
      begin += part.size();
    }
  }
  // Removes the rows from both tiers.
  void Erase(std::span<const Key> keys);

  // Visit every row in either tier: ForEach in no particular order, ForEachInOrder by ascending key
  // the rows that changed after `since` (kSinceEver, or the clock of the last mark).
  using Visit = std::function<Status(Key key, std::span<const std::byte> row)>;
  Status ForEach(const Visit& visit) const;
  Status ForEachInOrder(const Visit& visit, int64_t since = kSinceEver) const;
  Result<uint64_t> CountChanged(int64_t since) const;
  // Returns the rows that changed after `since`, by ascending key. Requires: none is on disk.
  std::vector<KeyedRow> RowsInOrder(int64_t since) const;
  // Marks the end of the disk log, so that rows on disk that change from now on are found without a
  // look at the others.
  void MarkSaved() { disk_mark_ = disk_.block_end(), newest_at_mark_ = newest_; }
  // Begins a save of the rows that changed after `since`, as they are now after `clock` steps; null
  // if no row may leave memory, while another save goes on, or if a row has been changed as of a
  // step after `clock`, as a store of workers does: its version would not tell it from a row that
  // changes during the save. Requires: OnChange() tells the step of each change; one of a step up
  // to `clock` ends the save.
  std::shared_ptr<RowsAtSave> BeginSave(int64_t clock, int64_t since);
  void OnChange(int64_t step);
  // Like ForEach; a failure of the disk is reported to the shard's memory.
  void VisitAll(const std::function<void(Key key, std::span<const std::byte> row)>& visit);

  // ---- For a save, which holds the gate.

  const DiskRows& disk() const { return disk_; }
  DiskStore& disk_store() const { return memory_->disk(); }
  void SaveEnded() { at_save_ = nullptr, kept_bytes_ = 0; }

  // ---- For the shard's memory.

  bool can_spill() const { return spills_ && store_.num_rows() > 0; }
  size_t BytesToAdd(size_t rows, size_t keys) const {
    return store_.BytesToAdd(rows, keys) + disk_.GrowthBytes(rows);
  }
  // Moves about `rows` rows to disk; fewer while all are in use.
  void Spill(size_t rows);
  void Compact(size_t spare_rows) { store_.Compact(spare_rows); }

 private:
  // Keeps the rows of `keys` for the save at hand before they change.
  void KeepForSave(std::span<const Key> keys);
  // Returns whether `rows` more can be made; if not, failure() names a remedy.
  bool NumbersSuffice(size_t rows);
  size_t KeysAtOnce() const { return std::clamp<size_t>(store_.num_rows() / 4, 64, 8192); }
  // Returns a visitor that calls visit(key, row without its version) for each row on disk that
  // changed after `since`.
  DiskRows::Visit VisitOnDisk(int64_t since, const Visit& visit) const;
  // Brings those of `keys` that are on disk into memory; `make`: with room for new rows of the
  // others.
  void Fetch(std::span<const Key> keys, bool make);
  // Lists those of `keys` that are only on disk in missing_. Returns how many rows will be added,
  // with `make` including keys that have no row.
  size_t FindMissing(std::span<const Key> keys, bool make);
  void ReadMissing();
  // A row chosen to leave memory.
  struct EvictionVictim {
    Key key;
    uint32_t row, version;
  };
  // Returns rows to move out, by ascending key.
  std::vector<EvictionVictim> ChooseVictims(size_t rows);

  RowStore store_;
  ShardMemory* const memory_;
  const bool spills_;
  const size_t rows_max_;
  Status failure_;
  DiskRows disk_;           // A row there is its bytes, then its version.
  uint64_t disk_mark_ = 0;  // Rows on disk changed since the mark are in this block or later.
  // The last step as of which rows have changed, now and at the mark. Rows on disk that were
  // changed before the mark as of a step after it lie in earlier blocks.
  int64_t newest_ = 0, newest_at_mark_ = 0;
  const DiskSpace kept_space_;     // On disk, for rows that are kept for a save.
  RowsAtSave* at_save_ = nullptr;  // The save at hand, under the gate.
  std::atomic<size_t> kept_bytes_ = 0;
  uint64_t rows_fetched_ = 0;
  uint64_t hand_ = 0;

  std::vector<Key> missing_;  // A member to reuse its memory.
};

}  // namespace hdps
