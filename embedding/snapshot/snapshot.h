// One shard's rows in one file, or what changed of them: written whole, checked whole. The format
// is in docs/formats.md.
#pragma once

#include <cstdint>
#include <optional>
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

struct CheckpointPart;

struct SnapshotHeader {
  uint64_t tables_digest = 0;  // TablesDigest() of the job that wrote it.
  ShardId shard;
  uint32_t num_shards = 0;
  Clock clock = 0;
  Clock base = kNoClock;  // Of a delta: the clock of the checkpoint that it builds on.
  bool is_delta() const { return base != kNoClock; }
};

// "shard_007.snapshot", "shard_007.delta"
std::string SnapshotName(ShardId shard);
std::string DeltaName(ShardId shard);

// Writes all tables' slices of one shard, streaming; of a delta, what changed since the mark that
// all of them have at header.base. The file is complete when ok; its bytes are synced, but for a
// delta's and where only the process has to be survived, and its name once the manifest's is.
Result<SavedFile> WriteSnapshot(FileSystem& files, const std::string& folder,
                                const SnapshotHeader& header,
                                const std::vector<const TableSlice*>& tables,
                                Survives survives = Survives::kMachine);

// One shard as it was when this was made, without its slices.
struct TakenSnapshot {
  SnapshotHeader header;
  std::vector<SnapshotPart> parts;
};
// None where what has to be copied is more than what is left of `budget`, or lies on disk.
// As in WriteSnapshot a delta needs the mark.
Result<std::optional<TakenSnapshot>> TakeSnapshot(const SnapshotHeader& header,
                                                  const std::vector<const TableSlice*>& tables,
                                                  CopyBudget* budget);
// "shards_007_of_view_2.pack": named by the first of its shards, and by the view in which it is
// written. A server that stood still, and was replaced meanwhile, writes nothing over what its
// successor wrote.
std::string PackName(ShardId first, ViewId view);
// Writes them one behind the other into one file of `folder`, which must be there, each as
// WriteSnapshot would: many small files take longer to make than to fill.
Result<std::vector<SavedFile>> WritePack(FileSystem& files, const std::string& folder, ViewId view,
                                         const std::vector<TakenSnapshot>& taken);

// Reads `saved` back into empty slices. kCorruption names the file and what does not fit (length,
// checksum, header, order of keys, ...); kInvalidArgument when it is the file of another job.
// Checks everything before the first row is stored.
Status ReadSnapshot(FileSystem& files, const std::string& folder, const SavedFile& saved,
                    const SnapshotHeader& expected, const std::vector<TableSlice*>& tables);
// The same of a shard as the newest checkpoint of `chain` holds it: its newest whole snapshot
// there, then every delta behind it, in order. Rows of what turns out to be damaged may have been
// stored where that does no harm: then everything is read once instead of twice.
enum class IfDamaged : uint8_t { kNothingIsStored, kSlicesAreDropped };
Status ReadShard(FileSystem& files, const std::vector<CheckpointPart>& chain, ShardId shard,
                 const std::vector<TableSlice*>& tables,
                 IfDamaged if_damaged = IfDamaged::kNothingIsStored);

// Reads the rows of one snapshot, whole or delta, and keeps none: for `hdps inspect`. What does not
// fit is refused as ReadSnapshot does; the slices, which stay empty, say which tables there are.
// Null where nobody knows: then the file is believed in that.
struct SnapshotSummary {
  SnapshotHeader header;
  struct Table {
    std::string name;
    uint32_t dim = 0, state_floats = 0;
    RowsDigest digest;
    uint64_t erased = 0;  // In a delta.
  };
  std::vector<Table> tables;
};
Result<SnapshotSummary> SummarizeSnapshot(FileSystem& files, const std::string& folder,
                                          const SavedFile& saved, const SnapshotHeader& expected,
                                          const std::vector<TableSlice*>* tables);

}  // namespace hdps
