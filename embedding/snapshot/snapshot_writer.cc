// Writes one shard's rows, block by block, each with its checksum.
#include <glog/logging.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "common/base/hash.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/failpoint.h"
#include "embedding/snapshot/snapshot.h"
#include "embedding/snapshot/snapshot_format.h"
#include "embedding/snapshot/snapshot_parts.h"

namespace hdps {
namespace {

// Collects short writes: a system call takes longer than copying a header.
class BufferedFile {
 public:
  explicit BufferedFile(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {
    buffer_.reserve(kBufferBytes);
  }
  Status Append(std::span<const std::byte> bytes) {
    if (buffer_.size() + bytes.size() > kBufferBytes) HDPS_RETURN_IF_ERROR(Flush());
    if (bytes.size() >= kBufferBytes) return file_->Append(bytes);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return {};
  }
  Status Finish(bool sync) {
    HDPS_RETURN_IF_ERROR(Flush());
    if (sync) HDPS_RETURN_IF_ERROR(file_->Sync());
    return file_->Close();
  }

 private:
  static constexpr size_t kBufferBytes = 64 << 10;

  Status Flush() {
    if (buffer_.empty()) return {};
    const Status status = file_->Append(buffer_);
    buffer_.clear();
    return status;
  }

  std::unique_ptr<WritableFile> file_;
  std::vector<std::byte> buffer_;
};

// Writes one snapshot into a file, and knows its length and hash.
class HashedFile {
 public:
  explicit HashedFile(BufferedFile& file) : file_(file) {}

  Status Append(std::span<const std::byte> bytes) {
    hash_.Append(bytes);
    bytes_ += bytes.size();
    return file_.Append(bytes);
  }
  // Fills in the checksum of a header and writes it.
  template <typename Header>
  Status AppendHeader(Header header) {
    const auto bytes = std::as_bytes(std::span<const Header, 1>(&header, 1));
    header.checksum = HashBytes(bytes.first(offsetof(Header, checksum)));
    return Append(bytes);
  }
  uint64_t bytes() const { return bytes_; }
  uint64_t hash() const { return hash_.Value(); }

 private:
  BufferedFile& file_;
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

Result<SavedFile> WriteParts(BufferedFile& to, const SnapshotHeader& header,
                             const std::vector<SnapshotPart>& parts) {
  HashedFile file(to);
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
  return SavedFile{
      .name = NameOf(header), .bytes = file.bytes(), .checksum = file.hash(), .rows = rows};
}

// Calls write(file) for a temporary file that is then renamed to `path`; after a failure neither
// file is left.
template <typename Write>
Status WriteBeside(FileSystem& files, const std::string& path, bool sync, const Write& write) {
  const std::string beside = path + ".tmp";
  const auto write_whole = [&]() -> Status {
    HDPS_FAILPOINT_OR_RETURN("snapshot.write.begun");
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> created, files.Create(beside));
    BufferedFile file(std::move(created));
    HDPS_RETURN_IF_ERROR(write(file));
    HDPS_RETURN_IF_ERROR(file.Finish(sync));
    HDPS_FAILPOINT_OR_RETURN("snapshot.before_rename");
    return files.RenameUnsynced(beside, path);
  };
  const Status status = write_whole();
  if (!status.ok()) {
    // The first failure is the one to report.
    if (const Status removed = files.RemoveAll(beside); !removed.ok()) return status;
    return status;
  }
  HDPS_FAILPOINT_OR_RETURN("snapshot.renamed");
  return {};
}

// Returns what the header says is written, of slices that have its mark.
SnapshotKind KindOf(const SnapshotHeader& header, const std::vector<const TableSlice*>& tables,
                    SnapshotKind of_delta) {
  if (!header.is_delta()) return SnapshotKind::kWhole;
  for (const TableSlice* table : tables) {
    const bool moves = of_delta == SnapshotKind::kMoved;
    CHECK_EQ(moves ? table->move_clock() : table->marked_clock(), header.base)
        << table->spec().name;
  }
  return of_delta;
}

}  // namespace

std::string SnapshotName(ShardId shard) { return ShardName(shard) + ".snapshot"; }
std::string DeltaName(ShardId shard) { return ShardName(shard) + kDeltaEnding; }

std::string PackName(ShardId first, ViewId view) {
  char name[64];
  std::snprintf(name, sizeof(name), "shards_%03u_of_view_%" PRIu64 ".pack", first.value,
                view.value);
  return name;
}

Result<SavedFile> WriteSnapshot(FileSystem& files, const std::string& folder,
                                const SnapshotHeader& header,
                                const std::vector<const TableSlice*>& tables, Survives survives,
                                SnapshotKind of_delta) {
  const SnapshotKind kind = KindOf(header, tables, of_delta);
  HDPS_RETURN_IF_ERROR(files.MakeDirectories(folder));
  SavedFile saved;
  const auto write = [&](BufferedFile& file) -> Status {
    HDPS_ASSIGN_OR_RETURN(saved, WriteParts(file, header, PartsOf(tables, kind)));
    return {};
  };
  const std::string path = JoinPath(folder, NameOf(header));
  const bool sync = survives == Survives::kMachine && !header.is_delta();
  HDPS_RETURN_IF_ERROR(WriteBeside(files, path, sync, write));
  return saved;
}

Result<std::optional<TakenSnapshot>> TakeSnapshot(const SnapshotHeader& header,
                                                  const std::vector<const TableSlice*>& tables,
                                                  CopyBudget* budget, SnapshotKind of_delta) {
  TakenSnapshot taken{header, {}};
  for (const SnapshotPart& part : PartsOf(tables, KindOf(header, tables, of_delta))) {
    HDPS_ASSIGN_OR_RETURN(std::optional<SnapshotPart> own, TakePart(part, header.clock, budget));
    if (!own) return std::optional<TakenSnapshot>();
    taken.parts.push_back(*std::move(own));
  }
  return std::optional<TakenSnapshot>(std::move(taken));
}

Result<std::vector<SavedFile>> WritePack(FileSystem& files, const std::string& folder, ViewId view,
                                         const std::vector<TakenSnapshot>& taken,
                                         Survives survives) {
  std::vector<SavedFile> all;
  if (taken.empty()) return all;
  const std::string name = PackName(taken.front().header.shard, view);
  bool sync = false;
  for (const TakenSnapshot& one : taken) {
    sync = sync || (survives == Survives::kMachine && !one.header.is_delta());
  }
  uint64_t offset = 0;
  const auto write = [&](BufferedFile& file) -> Status {
    for (const TakenSnapshot& one : taken) {
      HDPS_ASSIGN_OR_RETURN(SavedFile saved, WriteParts(file, one.header, one.parts));
      saved.pack = name;
      saved.offset = std::exchange(offset, offset + saved.bytes);
      all.push_back(std::move(saved));
    }
    return {};
  };
  HDPS_RETURN_IF_ERROR(WriteBeside(files, JoinPath(folder, name), sync, write));
  return all;
}

}  // namespace hdps
