// The rows of a slice as they were when a save began, read while requests change them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "embedding/disk/disk_rows.h"

namespace hdps {

class TieredRows;

// RowsAtSave holds the rows of one save by copy on update (Cao et al. 2011, "Fast Checkpoint
// Recovery Algorithms for Frequently Consistent Applications"): before a row of the save is changed
// or removed, the slice keeps its bytes here, on disk. So a save needs hardly any memory, and
// nobody waits for it.
//
// Invariant: each row of the save is in one place: in the slice with a version of before the save,
// or here. The slice and the readers use this object under the gate, which outlives both.
class RowsAtSave : public std::enable_shared_from_this<RowsAtSave> {
 public:
  // Bounds tell the rows of the save from others: a step after `since` changed them, and none after
  // `clock`. Those that are on disk when the save begins are in block `from` or a later one.
  struct Bounds {
    int64_t clock, since;
    uint64_t from;
  };
  // `space`: nothing else uses it.
  RowsAtSave(TieredRows& rows, std::shared_ptr<Mutex> gate, const DiskSpace& space, Bounds bounds,
             uint64_t num_rows);
  ~RowsAtSave();
  RowsAtSave(const RowsAtSave&) = delete;
  RowsAtSave& operator=(const RowsAtSave&) = delete;

  uint64_t num_rows() const { return num_rows_; }

  // ---- For the slice, which holds the gate.

  bool IsOf(int64_t clock, int64_t since) const {
    return bounds_.clock == clock && bounds_.since == since;
  }
  // Returns whether the save has what `step` changed, so that no more changes of it may come.
  bool IsBefore(int64_t step) const { return step <= bounds_.clock; }
  // Keeps those of `keys` that are in memory and belong to the save.
  Status Keep(std::span<const Key> keys);
  // Adds a row as it is on disk, its version behind it, if it belongs to the save; PutAdded() keeps
  // what was added.
  void AddFromDisk(Key key, std::span<const std::byte> row);
  Status PutAdded();
  // Ends the save; readers get `why` as their error. The first reason counts.
  void End(const Status& why);
  size_t bytes() const { return kept_ ? kept_->bytes() : 0; }  // Memory of what finds kept rows.

  // Reads the rows by ascending key.
  class Reader {
   public:
    explicit Reader(std::shared_ptr<RowsAtSave> save) : save_(std::move(save)) {}
    // Calls visit(key, row without its version) for up to `rows` more rows; for none if there are
    // no more. Holds the gate, so requests wait that long.
    using Visit = std::function<void(Key key, std::span<const std::byte> row)>;
    Status Read(size_t rows, const Visit& visit);

   private:
    Status ReadSome(size_t* rows, const Visit& visit);

    const std::shared_ptr<RowsAtSave> save_;
    std::optional<DiskRows::Reader> spilled_, kept_;
    Key next_ = 0;
    bool ended_ = false;
    std::vector<Key> in_memory_;  // A member to reuse its memory.
  };

 private:
  // A row that is about to be kept: its bytes begin at `begin` of bytes_.
  struct Added {
    Key key;
    size_t begin;
  };
  // Returns whether a row of this version belongs to the save.
  bool Holds(uint32_t version) const;
  void Add(Key key, uint32_t version, std::span<const std::byte> row);

  const std::shared_ptr<Mutex> gate_;
  const Bounds bounds_;
  const uint64_t num_rows_;
  TieredRows* rows_;                // Null once the save has ended.
  Status ended_;                    // Why.
  std::unique_ptr<DiskRows> kept_;  // Rows as they were, each with its version behind it.
  std::vector<Added> added_;
  std::vector<std::byte> bytes_;  // Of the rows in added_.
};

}  // namespace hdps
