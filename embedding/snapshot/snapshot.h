// Writes and reads one shard's rows, or what changed of them, as one file, whole and checked.
// docs/formats.md describes the format.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/protocol/manifest.h"
#include "common/protocol/manifest_parts.h"
#include "embedding/row_copy.h"
#include "embedding/snapshot/snapshot_parts.h"
#include "embedding/table.h"

namespace hdps {

class RowTaker;
struct CheckpointPart;

struct SnapshotHeader {
  uint64_t tables_digest = 0;  // TablesDigest() of the job that wrote it.
  ShardId shard;
  uint32_t num_shards = 0;
  Clock clock = 0;
  Clock base = kNoClock;  // For a delta: the clock of the checkpoint it builds on.
  bool is_delta() const { return base != kNoClock; }
};

// The file names "shard_007.snapshot" and "shard_007.delta".
std::string SnapshotName(ShardId shard);
std::string DeltaName(ShardId shard);

// Writes all tables' slices of one shard, streaming; for a delta, what changed since the mark that
// all of them have at header.base: that of a save, or that of a move if `of_delta` is kMoved. The
// file is complete if the result is ok. Its bytes are synced,
// except for a delta or if only a crash of the process has to be survived; its name is synced with
// the manifest.
Result<SavedFile> WriteSnapshot(FileSystem& files, const std::string& folder,
                                const SnapshotHeader& header,
                                const std::vector<const TableSlice*>& tables,
                                Survives survives = Survives::kMachine,
                                SnapshotKind of_delta = SnapshotKind::kDelta);

// One shard at one time, while its slices go on changing: copies, and rows that they keep for it.
struct TakenSnapshot {
  SnapshotHeader header;
  std::vector<SnapshotPart> parts;
};
// Takes a shard as it is. Returns none if copies need more than is left of `budget`. As in
// WriteSnapshot a delta needs the mark.
Result<std::optional<TakenSnapshot>> TakeSnapshot(const SnapshotHeader& header,
                                                  const std::vector<const TableSlice*>& tables,
                                                  CopyBudget* budget,
                                                  SnapshotKind of_delta = SnapshotKind::kDelta);
// Returns a name such as "shards_007_of_view_2.pack", of the first shard in the file and the view
// in which it is written. The view keeps a server that stalled and was replaced from overwriting
// what its successor wrote.
std::string PackName(ShardId first, ViewId view);
// Writes the copies one behind the other into one file of `folder`, which must exist, each as
// WriteSnapshot would: many small files take longer to create than to fill. Rows of a move need not
// survive a crash of the machine.
Result<std::vector<SavedFile>> WritePack(FileSystem& files, const std::string& folder, ViewId view,
                                         const std::vector<TakenSnapshot>& taken,
                                         Survives survives = Survives::kMachine);

// Reads `saved` into empty slices. kCorruption names the file and what is wrong (length, checksum,
// header, order of keys, ...); kInvalidArgument if the file is of another job. Everything is
// checked before the first row is stored.
Status ReadSnapshot(FileSystem& files, const std::string& folder, const SavedFile& saved,
                    const SnapshotHeader& expected, const std::vector<TableSlice*>& tables);
// Reads a shard as of the newest checkpoint of `chain`: its newest whole snapshot there, then every
// delta after it, in order. With kSlicesAreDropped the caller drops the slices after an error; each
// file is then read once instead of twice, and rows of a damaged file may have been stored.
enum class IfDamaged : uint8_t { kNothingIsStored, kSlicesAreDropped };
Status ReadShard(FileSystem& files, const std::vector<CheckpointPart>& chain, ShardId shard,
                 const std::vector<TableSlice*>& tables,
                 IfDamaged if_damaged = IfDamaged::kNothingIsStored);
// The same into `takers`, [tables], instead of slices, which stay empty and only tell which tables
// there are. Each file is read once, so after an error rows of a damaged file may have been taken.
// Counts of policies are checked and left out.
Status ReadShard(FileSystem& files, const std::vector<CheckpointPart>& chain, ShardId shard,
                 const std::vector<TableSlice*>& tables, std::span<RowTaker* const> takers);
// The same from the newest file to the one with all rows, for takers to whom the first row of a key
// is the one that counts. Calls next(whether it is the last) before each file.
Status ReadShardBackwards(FileSystem& files, const std::vector<CheckpointPart>& chain,
                          ShardId shard, const std::vector<TableSlice*>& tables,
                          std::span<RowTaker* const> takers, const std::function<void(bool)>& next);
// The same as ReadShard() of what one delta changes in a shard. Requires: !HoldsAllRows(delta,
// shard).
Status ReadDelta(FileSystem& files, const CheckpointPart& delta, ShardId shard,
                 const std::vector<TableSlice*>& tables, std::span<RowTaker* const> takers);
// Returns whether this part of a checkpoint has all rows of the shard. A delta may.
bool HoldsAllRows(const CheckpointPart& part, ShardId shard);

// Reads one snapshot, whole or delta, and summarizes it without keeping rows; for `hdps inspect`.
// Refuses what ReadSnapshot refuses. The slices stay empty and only tell which tables there are;
// with null, the tables in the file are believed.
struct SnapshotSummary {
  SnapshotHeader header;
  struct Table {
    std::string name;
    uint32_t dim = 0, state_floats = 0;
    RowsDigest digest;
    uint64_t erased = 0;  // Removed keys, in a delta.
  };
  std::vector<Table> tables;
};
Result<SnapshotSummary> SummarizeSnapshot(FileSystem& files, const std::string& folder,
                                          const SavedFile& saved, const SnapshotHeader& expected,
                                          const std::vector<TableSlice*>* tables);

}  // namespace hdps
