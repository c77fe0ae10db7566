// Walks over snapshots. Bytes are checked before they are used: the file's length bounds what is
// allocated, a header's checksum is checked before its fields, a block's before its rows.
#include "embedding/snapshot/snapshot_walk.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/platform/seekable_file.h"
#include "embedding/snapshot/snapshot_format.h"

namespace hdps {
namespace {

// Walks over one file, from the first byte to the last.
//
// Invariant: visitors see only bytes whose checksum was confirmed.
class Walk {
 public:
  Walk(FileSystem& files, std::string folder, const SavedFile& saved)
      : files_(files), folder_(std::move(folder)), path_(PlaceOf(folder_, saved)), saved_(saved) {}

  Status Run(const SnapshotVisitor& visitor) {
    HDPS_RETURN_IF_ERROR(CheckLength());
    HDPS_ASSIGN_OR_RETURN(file_, OpenSaved(files_, folder_, saved_));
    HDPS_ASSIGN_OR_RETURN(const uint32_t num_tables, ReadFileHeader(visitor));
    for (uint32_t t = 0; t < num_tables; ++t) {
      HDPS_ASSIGN_OR_RETURN(const SnapshotTable table, ReadTableHeader(t, visitor));
      HDPS_RETURN_IF_ERROR(ReadBlocks(t, table, visitor));
    }
    return ReadTrailer();
  }

  // Reads the headers of the file and its tables, and passes over blocks.
  Status RunHeaders(const SnapshotVisitor& visitor) {
    HDPS_RETURN_IF_ERROR(CheckLength());
    HDPS_ASSIGN_OR_RETURN(file_, files_.OpenSequential(JoinPath(
                                     folder_, saved_.pack.empty() ? saved_.name : saved_.pack)));
    anywhere_ = dynamic_cast<SeekableFile*>(file_.get());
    if (anywhere_ == nullptr) return {Code::kIoError, path_ + " can only be read in order"};
    HDPS_ASSIGN_OR_RETURN(const uint32_t num_tables, ReadFileHeader(visitor));
    for (uint32_t t = 0; t < num_tables; ++t) {
      HDPS_ASSIGN_OR_RETURN(const SnapshotTable table, ReadTableHeader(t, visitor));
      const uint64_t row_floats = uint64_t{table.dim} + table.state_floats;
      const uint64_t block_rows = SnapshotBlockRows(row_floats);
      if (table.num_rows > saved_.bytes) return Broken("more rows than bytes");
      offset_ += (table.num_rows + block_rows - 1) / block_rows * sizeof(SnapshotBlockHeader) +
                 table.num_rows * (sizeof(Key) + row_floats * sizeof(float));
    }
    return {};
  }

 private:
  // Returns the number of tables.
  Result<uint32_t> ReadFileHeader(const SnapshotVisitor& visitor) {
    SnapshotFileHeader header;
    HDPS_RETURN_IF_ERROR(ReadHeader("file header", &header));
    if (header.magic != kSnapshotMagic) return Broken("it is not a snapshot");
    if (header.version != kSnapshotVersion && header.version != kDeltaVersion) {
      return Status(Code::kInvalidArgument,
                    path_ + ": snapshot version " + std::to_string(header.version) +
                        ", this program reads " + std::to_string(kSnapshotVersion) + " and " +
                        std::to_string(kDeltaVersion));
    }
    if (header.num_tables > kSnapshotTablesMax) return Broken("too many tables");
    SnapshotDeltaHeader delta{.base_clock = kNoClock};
    is_delta_ = header.version == kDeltaVersion;
    if (is_delta_) HDPS_RETURN_IF_ERROR(ReadHeader("header of a delta", &delta));
    if (is_delta_ && (delta.base_clock < 0 || delta.base_clock >= header.clock)) {
      return Broken("the clock of the checkpoint that it builds on is out of range");
    }
    HDPS_RETURN_IF_ERROR(visitor.header({.tables_digest = header.tables_digest,
                                         .shard = {header.shard},
                                         .num_shards = header.num_shards,
                                         .clock = header.clock,
                                         .base = delta.base_clock},
                                        header.num_tables));
    return header.num_tables;
  }

  Status Broken(const std::string& what) const {
    return {Code::kCorruption, path_ + ": at byte " + std::to_string(offset_) + ": " + what};
  }

  Status CheckLength() const {
    const std::string& name = saved_.pack.empty() ? saved_.name : saved_.pack;
    Result<uint64_t> size = files_.FileSize(JoinPath(folder_, name));
    if (!size.ok()) {
      const bool missing = size.status().code() == Code::kNotFound;
      return {missing ? Code::kCorruption : size.status().code(), size.status().message()};
    }
    const uint64_t end = saved_.offset + saved_.bytes;
    if (saved_.pack.empty() ? *size != end : *size < end) {
      return {Code::kCorruption, path_ + ": " + std::to_string(*size) +
                                     " bytes long, the manifest says " + std::to_string(end)};
    }
    return {};
  }

  Status ReadExactly(const char* what, std::span<std::byte> bytes) {
    size_t filled = 0;
    while (filled < bytes.size()) {
      const std::span<std::byte> rest = bytes.subspan(filled);
      HDPS_ASSIGN_OR_RETURN(const size_t got,
                            anywhere_ == nullptr
                                ? file_->Read(rest)
                                : anywhere_->ReadAt(saved_.offset + offset_ + filled, rest));
      if (got == 0) return Broken(std::string("the file ends inside the ") + what);
      filled += got;
    }
    hash_.Append(bytes);
    offset_ += bytes.size();
    return {};
  }

  template <typename Header>
  Status ReadHeader(const char* what, Header* header) {
    const auto bytes = std::as_writable_bytes(std::span<Header, 1>(header, 1));
    HDPS_RETURN_IF_ERROR(ReadExactly(what, bytes));
    if (HashBytes(bytes.first(offsetof(Header, checksum))) != header->checksum) {
      return Broken(std::string("the checksum of the ") + what + " before does not fit");
    }
    return {};
  }

  Result<SnapshotTable> ReadTableHeader(uint32_t position, const SnapshotVisitor& visitor) {
    SnapshotTableHeader header;
    HDPS_RETURN_IF_ERROR(ReadHeader("table header", &header));
    const uint64_t row_floats = uint64_t{header.dim} + header.state_floats;
    const bool may_be_erased = is_delta_ && row_floats == 0;
    if (header.table != position || (header.dim == 0 && !may_be_erased) ||
        row_floats > kSnapshotRowFloatsMax || header.name_bytes > kSnapshotNameBytesMax) {
      return Broken("the fields of the table header before are out of range");
    }
    SnapshotTable shape{std::string(header.name_bytes, ' '), header.dim, header.state_floats,
                        header.num_rows, PartKind::kRows};
    HDPS_RETURN_IF_ERROR(ReadExactly(
        "table name", std::as_writable_bytes(std::span(shape.name.data(), shape.name.size()))));
    if (HashString(shape.name) != header.name_hash) return Broken("the table's name is damaged");
    shape.kind = KindOfPart(name_before_, shape.name, shape.dim);
    name_before_ = shape.name;
    HDPS_RETURN_IF_ERROR(visitor.table(position, shape));
    return shape;
  }

  Status ReadBlocks(uint32_t position, const SnapshotTable& shape, const SnapshotVisitor& visitor) {
    Key last = 0;
    for (uint64_t rows = 0; rows < shape.num_rows;) {
      HDPS_ASSIGN_OR_RETURN(const uint32_t more,
                            ReadBlock(position, shape, shape.num_rows - rows, &last, visitor));
      last_is_set_ = true;
      rows += more;
    }
    last_is_set_ = false;
    if (shape.kind == PartKind::kRows) total_rows_ += shape.num_rows;
    return {};
  }

  // Returns the number of rows read; *last is the largest key of the table so far.
  Result<uint32_t> ReadBlock(uint32_t position, const SnapshotTable& shape, uint64_t rows_left,
                             Key* last, const SnapshotVisitor& visitor) {
    SnapshotBlockHeader header;
    HDPS_RETURN_IF_ERROR(ReadHeader("block header", &header));
    const size_t row_floats = size_t{shape.dim} + shape.state_floats;
    const uint64_t rows = std::min<uint64_t>(SnapshotBlockRows(row_floats), rows_left);
    if (header.table != position || header.num_rows != rows) {
      return Broken("the block has " + std::to_string(header.num_rows) + " rows, expected " +
                    std::to_string(rows));
    }
    keys_.resize(rows);
    rows_.resize(rows * row_floats);
    HDPS_RETURN_IF_ERROR(ReadExactly("keys of a block", std::as_writable_bytes(std::span(keys_))));
    HDPS_RETURN_IF_ERROR(ReadExactly("rows of a block", std::as_writable_bytes(std::span(rows_))));
    HashStream payload;
    payload.Append(std::as_bytes(std::span(keys_)));
    payload.Append(std::as_bytes(std::span(rows_)));
    if (payload.Value() != header.payload_hash) {
      return Broken("the checksum of the block before does not fit");
    }
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (i == 0 ? last_is_set_ && keys_[0] <= *last : keys_[i] <= keys_[i - 1]) {
        return Broken("the keys of table '" + shape.name + "' do not ascend");
      }
    }
    *last = keys_.back();
    HDPS_RETURN_IF_ERROR(visitor.block(position, keys_, rows_));
    return header.num_rows;
  }

  Status ReadTrailer() {
    const uint64_t body_bytes = offset_, body_hash = hash_.Value();
    SnapshotTrailer trailer;
    HDPS_RETURN_IF_ERROR(ReadHeader("trailer", &trailer));
    if (trailer.magic != kTrailerMagic || trailer.body_bytes != body_bytes ||
        trailer.body_hash != body_hash || trailer.total_rows != total_rows_) {
      return Broken("the trailer before does not fit the file");
    }
    if (offset_ != saved_.bytes) return Broken("bytes follow the trailer");
    if (hash_.Value() != saved_.checksum) {
      return Broken("the whole is intact but is not the file the manifest names");
    }
    if (total_rows_ != saved_.rows) {
      return Broken(std::to_string(total_rows_) + " rows, the manifest says " +
                    std::to_string(saved_.rows));
    }
    return {};
  }

  FileSystem& files_;
  const std::string folder_;
  const std::string path_;  // Path for error messages.
  const SavedFile& saved_;
  std::unique_ptr<SequentialFile> file_;
  SeekableFile* anywhere_ = nullptr;  // The whole file, of which this is a range; null: in order.
  HashStream hash_;                   // Hash of all bytes read so far.
  uint64_t offset_ = 0, total_rows_ = 0;
  bool last_is_set_ = false, is_delta_ = false;
  std::string name_before_;
  std::vector<Key> keys_;
  std::vector<float> rows_;
};

}  // namespace

Status WalkSnapshot(FileSystem& files, const std::string& folder, const SavedFile& saved,
                    const SnapshotVisitor& visitor) {
  return Walk(files, folder, saved).Run(visitor);
}

Result<std::vector<SnapshotTable>> TablesOfSnapshot(FileSystem& files, const std::string& folder,
                                                    const SavedFile& saved) {
  std::vector<SnapshotTable> tables;
  const SnapshotVisitor note{.header = [](const SnapshotHeader&, uint32_t) { return Status(); },
                             .table =
                                 [&](uint32_t, const SnapshotTable& table) {
                                   tables.push_back(table);
                                   return Status();
                                 },
                             .block = nullptr};
  HDPS_RETURN_IF_ERROR(Walk(files, folder, saved).RunHeaders(note));
  return tables;
}

}  // namespace hdps
