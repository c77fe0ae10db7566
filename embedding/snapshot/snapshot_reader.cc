// Reads snapshots into slices, takers of rows and summaries.
#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "common/base/hash.h"
#include "common/platform/failpoint.h"
#include "embedding/snapshot/row_taker.h"
#include "embedding/snapshot/snapshot.h"
#include "embedding/snapshot/snapshot_checks.h"
#include "embedding/snapshot/snapshot_parts.h"
#include "embedding/snapshot/snapshot_walk.h"

namespace hdps {
namespace {

// Reads one file into slices: first checks it, then stores its rows.
class Reading {
 public:
  Reading(FileSystem& files, const std::string& folder, const SavedFile& saved,
          const SnapshotHeader& expected, const std::vector<TableSlice*>& tables)
      : files_(files),
        folder_(folder),
        saved_(saved),
        parts_(PartsOf(tables, expected.is_delta() ? SnapshotKind::kDelta : SnapshotKind::kWhole)),
        expectation_(PlaceOf(folder, saved), expected, parts_) {}

  Status Check() const { return WalkSnapshot(files_, folder_, saved_, Checks()); }

  // Checks again, block by block, because the file may have changed in between.
  Status Store() const {
    const SnapshotVisitor check = Checks();
    SnapshotVisitor store = check;
    store.block = [&](uint32_t t, std::span<const Key> keys, std::span<const float> rows) {
      HDPS_RETURN_IF_ERROR(check.block(t, keys, rows));
      return parts_[t].store(keys, rows);
    };
    return WalkSnapshot(files_, folder_, saved_, store);
  }

  // Gives everything but the counts of policies to the takers, [tables], in one walk.
  Status Take(std::span<RowTaker* const> takers) const {
    const SnapshotVisitor check = Checks();
    std::vector<RowTaker*> of_part;
    size_t tables = 0;
    for (const SnapshotPart& part : parts_) {
      of_part.push_back(part.kind == PartKind::kSketch ? nullptr : takers[tables]);
      tables += part.kind == PartKind::kRows ? 1 : 0;
    }
    SnapshotVisitor take = check;
    take.table = [&](uint32_t t, const SnapshotTable& shape) {
      HDPS_RETURN_IF_ERROR(check.table(t, shape));
      return parts_[t].kind == PartKind::kRows ? of_part[t]->Begin(shape.num_rows) : Status();
    };
    take.block = [&](uint32_t t, std::span<const Key> keys, std::span<const float> rows) {
      HDPS_RETURN_IF_ERROR(check.block(t, keys, rows));
      if (parts_[t].kind == PartKind::kRows) return of_part[t]->Store(keys, rows);
      if (parts_[t].kind == PartKind::kErased) of_part[t]->Erase(keys);
      return Status();
    };
    return WalkSnapshot(files_, folder_, saved_, take);
  }

  SnapshotVisitor Checks() const {
    return {.header = [this](const SnapshotHeader& header,
                             uint32_t n) { return expectation_.CheckHeader(header, n); },
            .table =
                [this](uint32_t t, const SnapshotTable& shape) {
                  return expectation_.CheckTable(t, shape.name, shape.dim, shape.state_floats);
                },
            .block =
                [this](uint32_t t, std::span<const Key> keys, std::span<const float> rows) {
                  return expectation_.CheckRows(t, keys, rows);
                }};
  }

 private:
  FileSystem& files_;
  const std::string folder_;
  const SavedFile saved_;
  const std::vector<SnapshotPart> parts_;
  const SnapshotExpectation expectation_;
};

// Returns the file of `manifest` with this name; null if there is none.
const SavedFile* FileOf(const Manifest& manifest, const std::string& name) {
  const auto at = std::ranges::find(manifest.files, name, &SavedFile::name);
  return at == manifest.files.end() ? nullptr : &*at;
}

Status NoFileOf(const CheckpointPart& part, const std::string& name) {
  return {Code::kCorruption, part.folder + ": the manifest does not name " + name};
}

using Readings = std::vector<std::unique_ptr<Reading>>;

// Returns the files of a shard as of the newest checkpoint of the chain: the newest first, back to
// the one with all rows.
Result<Readings> FilesOfShard(FileSystem& files, const std::vector<CheckpointPart>& chain,
                              ShardId shard, const std::vector<TableSlice*>& tables) {
  Readings readings;
  for (size_t at = chain.size(); at-- > 0;) {
    const Manifest& manifest = chain[at].manifest;
    SnapshotHeader expected{manifest.tables_digest, shard, manifest.num_shards, manifest.clock,
                            kNoClock};
    const SavedFile* whole = FileOf(manifest, SnapshotName(shard));
    const SavedFile* saved = whole != nullptr ? whole : FileOf(manifest, DeltaName(shard));
    if (saved == nullptr || (whole == nullptr && at == 0)) {
      return NoFileOf(chain[at], SnapshotName(shard));
    }
    if (whole == nullptr) expected.base = chain[at - 1].manifest.clock;
    readings.push_back(
        std::make_unique<Reading>(files, chain[at].folder, *saved, expected, tables));
    if (whole != nullptr) break;
  }
  return readings;
}

}  // namespace

Status ReadSnapshot(FileSystem& files, const std::string& folder, const SavedFile& saved,
                    const SnapshotHeader& expected, const std::vector<TableSlice*>& tables) {
  HDPS_FAILPOINT_OR_RETURN("snapshot.read.begun");
  const Reading reading(files, folder, saved, expected, tables);
  HDPS_RETURN_IF_ERROR(reading.Check());
  return reading.Store();
}

Status ReadShard(FileSystem& files, const std::vector<CheckpointPart>& chain, ShardId shard,
                 const std::vector<TableSlice*>& tables, IfDamaged if_damaged) {
  HDPS_FAILPOINT_OR_RETURN("snapshot.read.begun");
  HDPS_ASSIGN_OR_RETURN(const Readings readings, FilesOfShard(files, chain, shard, tables));
  if (if_damaged == IfDamaged::kNothingIsStored) {
    for (const auto& reading : readings) HDPS_RETURN_IF_ERROR(reading->Check());
  }
  for (auto at = readings.rbegin(); at != readings.rend(); ++at) {
    HDPS_RETURN_IF_ERROR((*at)->Store());
  }
  return {};
}

Status ReadShard(FileSystem& files, const std::vector<CheckpointPart>& chain, ShardId shard,
                 const std::vector<TableSlice*>& tables, std::span<RowTaker* const> takers) {
  HDPS_FAILPOINT_OR_RETURN("snapshot.read.begun");
  HDPS_ASSIGN_OR_RETURN(const Readings readings, FilesOfShard(files, chain, shard, tables));
  for (auto at = readings.rbegin(); at != readings.rend(); ++at) {
    HDPS_RETURN_IF_ERROR((*at)->Take(takers));
  }
  return {};
}

Status ReadShardBackwards(FileSystem& files, const std::vector<CheckpointPart>& chain,
                          ShardId shard, const std::vector<TableSlice*>& tables,
                          std::span<RowTaker* const> takers,
                          const std::function<void(bool)>& next) {
  HDPS_FAILPOINT_OR_RETURN("snapshot.read.begun");
  HDPS_ASSIGN_OR_RETURN(const Readings readings, FilesOfShard(files, chain, shard, tables));
  for (const auto& reading : readings) {
    next(&reading == &readings.back());
    HDPS_RETURN_IF_ERROR(reading->Take(takers));
  }
  return {};
}

Status ReadDelta(FileSystem& files, const CheckpointPart& delta, ShardId shard,
                 const std::vector<TableSlice*>& tables, std::span<RowTaker* const> takers) {
  HDPS_FAILPOINT_OR_RETURN("snapshot.read.begun");
  const SavedFile* const saved = FileOf(delta.manifest, DeltaName(shard));
  if (saved == nullptr) return NoFileOf(delta, DeltaName(shard));
  const Manifest& manifest = delta.manifest;
  const SnapshotHeader expected{manifest.tables_digest, shard, manifest.num_shards, manifest.clock,
                                manifest.base_clock};
  return Reading(files, delta.folder, *saved, expected, tables).Take(takers);
}

bool HoldsAllRows(const CheckpointPart& part, ShardId shard) {
  return FileOf(part.manifest, SnapshotName(shard)) != nullptr;
}

Result<SnapshotSummary> SummarizeSnapshot(FileSystem& files, const std::string& folder,
                                          const SavedFile& saved, const SnapshotHeader& expected,
                                          const std::vector<TableSlice*>* tables) {
  std::optional<Reading> of_job;
  if (tables != nullptr) of_job.emplace(files, folder, saved, expected, *tables);
  const SnapshotExpectation place(PlaceOf(folder, saved), expected, {});
  SnapshotTable last;
  const SnapshotVisitor of_file{
      .header = [&](const SnapshotHeader& header, uint32_t) { return place.CheckPlace(header); },
      .table =
          [&](uint32_t, const SnapshotTable& shape) {
            last = shape;
            return Status();
          },
      .block =
          [&](uint32_t, std::span<const Key> keys, std::span<const float> rows) {
            if (last.kind != PartKind::kRows) return Status();
            return place.CheckWeights(last.name, last.dim, keys, rows);
          }};
  const SnapshotVisitor check = of_job ? of_job->Checks() : of_file;
  SnapshotSummary summary;
  std::vector<uint64_t> table_hashes;
  PartKind kind = PartKind::kRows;
  uint64_t erased = 0;
  SnapshotVisitor sum{
      .header =
          [&](const SnapshotHeader& header, uint32_t num_tables) {
            summary.header = header;
            return check.header(header, num_tables);
          },
      .table =
          [&](uint32_t position, const SnapshotTable& shape) {
            HDPS_RETURN_IF_ERROR(check.table(position, shape));
            kind = shape.kind;
            if (kind == PartKind::kErased) erased = shape.num_rows;
            if (kind != PartKind::kRows) return Status();
            summary.tables.push_back(
                {shape.name, shape.dim, shape.state_floats, {}, std::exchange(erased, 0)});
            table_hashes.push_back(TableHash(shape.name));
            return Status();
          },
      .block =
          [&](uint32_t position, std::span<const Key> keys, std::span<const float> rows) {
            HDPS_RETURN_IF_ERROR(check.block(position, keys, rows));
            if (kind != PartKind::kRows) return Status();
            const size_t row_floats = rows.size() / keys.size();
            for (size_t i = 0; i < keys.size(); ++i) {
              summary.tables.back().digest.AddRow(table_hashes.back(), keys[i],
                                                  rows.subspan(i * row_floats, row_floats));
            }
            return Status();
          }};
  HDPS_RETURN_IF_ERROR(WalkSnapshot(files, folder, saved, sum));
  return summary;
}

}  // namespace hdps
