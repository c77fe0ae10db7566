// Writes one shard's rows, block by block, each with its checksum.
#include <glog/logging.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "common/base/hash.h"
#include "common/platform/failpoint.h"
#include "embedding/snapshot/snapshot.h"
#include "embedding/snapshot/snapshot_format.h"
#include "embedding/snapshot/snapshot_parts.h"

namespace hdps {
namespace {

// A file that knows its length and hash.
class HashedFile {
 public:
  explicit HashedFile(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}

  Status Append(std::span<const std::byte> bytes) {
    hash_.Append(bytes);
    bytes_ += bytes.size();
    return file_->Append(bytes);
  }
  // Fills in the checksum of a header and writes it.
  template <typename Header>
  Status AppendHeader(Header header) {
    const auto bytes = std::as_bytes(std::span<const Header, 1>(&header, 1));
    header.checksum = HashBytes(bytes.first(offsetof(Header, checksum)));
    return Append(bytes);
  }
  Status Finish(bool sync) {
    if (sync) HDPS_RETURN_IF_ERROR(file_->Sync());
    return file_->Close();
  }
  uint64_t bytes() const { return bytes_; }
  uint64_t hash() const { return hash_.Value(); }

 private:
  std::unique_ptr<WritableFile> file_;
  HashStream hash_;
  uint64_t bytes_ = 0;
};

std::string ShardName(ShardId shard) {
  char name[32];
  std::snprintf(name, sizeof(name), "shard_%03u", shard.value);
  return name;
}

std::string NameOf(const SnapshotHeader& header) {
  return header.is_delta() ? DeltaName(header.shard) : SnapshotName(header.shard);
}

Status WritePart(HashedFile& file, uint32_t position, const SnapshotPart& part, uint64_t num_rows) {
  const std::string& name = part.name;
  const uint32_t row_floats = part.dim + part.state_floats;
  HDPS_RETURN_IF_ERROR(
      file.AppendHeader(SnapshotTableHeader{.num_rows = num_rows,
                                            .dim = part.dim,
                                            .state_floats = part.state_floats,
                                            .name_bytes = static_cast<uint32_t>(name.size()),
                                            .table = position,
                                            .name_hash = HashString(name)}));
  HDPS_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span<const char>(name))));
  uint64_t written = 0;
  const auto write_block = [&](std::span<const Key> keys, std::span<const float> rows) {
    written += keys.size();
    HashStream payload;
    payload.Append(std::as_bytes(keys));
    payload.Append(std::as_bytes(rows));
    Status status =
        file.AppendHeader(SnapshotBlockHeader{.num_rows = static_cast<uint32_t>(keys.size()),
                                              .table = position,
                                              .payload_hash = payload.Value()});
    if (status.ok()) status = file.Append(std::as_bytes(keys));
    return status.ok() ? file.Append(std::as_bytes(rows)) : status;
  };
  HDPS_RETURN_IF_ERROR(part.visit(SnapshotBlockRows(row_floats), write_block));
  CHECK_EQ(written, num_rows) << name;
  return {};
}

Result<SavedFile> WriteWhole(FileSystem& files, const std::string& path,
                             const SnapshotHeader& header,
                             const std::vector<const TableSlice*>& tables) {
  HDPS_FAILPOINT_OR_RETURN("snapshot.write.begun");
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> created, files.Create(path));
  HashedFile file(std::move(created));
  const std::vector<SnapshotPart> parts =
      PartsOf(tables, header.is_delta() ? SnapshotKind::kDelta : SnapshotKind::kWhole);
  HDPS_RETURN_IF_ERROR(file.AppendHeader(
      SnapshotFileHeader{.version = header.is_delta() ? kDeltaVersion : kSnapshotVersion,
                         .num_tables = static_cast<uint32_t>(parts.size()),
                         .tables_digest = header.tables_digest,
                         .shard = header.shard.value,
                         .num_shards = header.num_shards,
                         .clock = header.clock}));
  if (header.is_delta()) {
    HDPS_RETURN_IF_ERROR(file.AppendHeader(SnapshotDeltaHeader{.base_clock = header.base}));
  }
  uint64_t rows = 0;
  for (uint32_t p = 0; p < parts.size(); ++p) {
    HDPS_ASSIGN_OR_RETURN(const uint64_t num_rows, parts[p].num_rows());
    if (parts[p].kind == PartKind::kRows) rows += num_rows;
    HDPS_RETURN_IF_ERROR(WritePart(file, p, parts[p], num_rows));
  }
  HDPS_RETURN_IF_ERROR(file.AppendHeader(
      SnapshotTrailer{.total_rows = rows, .body_bytes = file.bytes(), .body_hash = file.hash()}));
  HDPS_RETURN_IF_ERROR(file.Finish(/*sync=*/!header.is_delta()));
  HDPS_FAILPOINT_OR_RETURN("snapshot.before_rename");
  return SavedFile{
      .name = NameOf(header), .bytes = file.bytes(), .checksum = file.hash(), .rows = rows};
}

}  // namespace

std::string SnapshotName(ShardId shard) { return ShardName(shard) + ".snapshot"; }
std::string DeltaName(ShardId shard) { return ShardName(shard) + kDeltaEnding; }

Result<SavedFile> WriteSnapshot(FileSystem& files, const std::string& folder,
                                const SnapshotHeader& header,
                                const std::vector<const TableSlice*>& tables) {
  for (const TableSlice* table : tables) {
    CHECK(!header.is_delta() || table->marked_clock() == header.base) << table->spec().name;
  }
  const std::string path = JoinPath(folder, NameOf(header));
  const std::string beside = path + ".tmp";
  HDPS_RETURN_IF_ERROR(files.MakeDirectories(folder));
  Result<SavedFile> saved = WriteWhole(files, beside, header, tables);
  Status status = saved.status();
  if (status.ok()) status = files.RenameUnsynced(beside, path);
  if (!status.ok()) {
    // The first failure is the one to report.
    if (const Status removed = files.RemoveAll(beside); !removed.ok()) return status;
    return status;
  }
  HDPS_FAILPOINT_OR_RETURN("snapshot.renamed");
  return saved;
}

}  // namespace hdps
