// Lays the arrays of FlatRows behind headers, and finds them there.
#include "embedding/flat_file.h"

#include <cstdio>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "common/base/hash.h"
#include "common/job/spec/table_spec.h"

namespace hdps {
namespace {

constexpr uint64_t kMagic = 0x544c465350444824u;  // "$HDPSFLT" in memory order.
constexpr uint32_t kVersion = 1;
constexpr uint64_t kArrayAlignment = 4096;  // Of a page, so that rows and slots share none.

struct FileHeader {
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t num_tables = 0;
  uint64_t tables_digest = 0;
  uint32_t shard = 0;
  uint32_t num_shards = 0;
  int64_t clock = 0;
};
// One for each table follows the file header. Offsets count from the begin of the file.
struct TableHeader {
  uint64_t rows_offset = 0, rows_bytes = 0;
  uint64_t slots_offset = 0, num_slots = 0;
  uint32_t dim = 0;
  uint32_t format = 0;  // As WeightFormat.
};
static_assert(sizeof(FileHeader) == 40 && sizeof(TableHeader) == 40);
static_assert(std::has_unique_object_representations_v<FileHeader>);
static_assert(std::has_unique_object_representations_v<TableHeader>);

// Appends to a file, and knows its length and checksum.
class FlatWriter {
 public:
  explicit FlatWriter(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}

  Status Append(std::span<const std::byte> bytes) {
    hash_.Append(bytes);
    bytes_ += bytes.size();
    return file_->Append(bytes);
  }
  // Appends zeros up to an offset.
  Status PadTo(uint64_t offset) {
    const std::vector<std::byte> zeros(offset - bytes_);
    return Append(zeros);
  }
  Result<SavedFile> Finish(std::string name, uint64_t rows) {
    HDPS_RETURN_IF_ERROR(file_->Sync());
    HDPS_RETURN_IF_ERROR(file_->Close());
    return SavedFile{
        .name = std::move(name), .bytes = bytes_, .checksum = hash_.Value(), .rows = rows};
  }

 private:
  const std::unique_ptr<WritableFile> file_;
  HashStream hash_;
  uint64_t bytes_ = 0;
};

// Returns the same rows at the first places, as FlatRows::arrays() wants them.
Result<std::unique_ptr<FlatRows>> PackedAnew(const FlatRows& rows) {
  auto packed = std::make_unique<FlatRows>(rows.format(), rows.dim());
  HDPS_RETURN_IF_ERROR(packed->Begin(rows.num_rows()));
  const auto copy = [&](std::span<const Key> keys, std::span<const float> weights) {
    const Status stored = packed->Store(keys, weights);
    packed->Publish();
    return stored;
  };
  HDPS_RETURN_IF_ERROR(rows.VisitRows(copy));
  packed->Publish();
  packed->Settle();
  return packed;
}

uint64_t Aligned(uint64_t offset) {
  return (offset + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment;
}

template <typename T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

}  // namespace

std::string FlatName(ShardId shard) {
  char name[32];
  std::snprintf(name, sizeof(name), "shard_%03u.flat", shard.value);
  return name;
}

Result<SavedFile> WriteFlat(FileSystem& files, const std::string& folder,
                            const SnapshotHeader& header,
                            const std::vector<const FlatRows*>& tables) {
  const FileHeader of_file{.num_tables = static_cast<uint32_t>(tables.size()),
                           .tables_digest = header.tables_digest,
                           .shard = header.shard.value,
                           .num_shards = header.num_shards,
                           .clock = header.clock};
  std::vector<TableHeader> headers;
  uint64_t end = sizeof(FileHeader) + tables.size() * sizeof(TableHeader), rows = 0;
  for (const FlatRows* const table : tables) {
    TableHeader& of_table = headers.emplace_back();
    of_table.dim = table->dim();
    of_table.format = static_cast<uint32_t>(table->format());
    of_table.rows_offset = Aligned(end);
    of_table.rows_bytes = table->num_rows() * FlatRows::RowBytes(table->format(), table->dim());
    of_table.slots_offset = Aligned(of_table.rows_offset + of_table.rows_bytes);
    of_table.num_slots = FlatRows::SlotsFor(table->num_rows());
    end = of_table.slots_offset + of_table.num_slots * sizeof(uint32_t);
    rows += table->num_rows();
  }
  const std::string name = FlatName(header.shard);
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.Create(JoinPath(folder, name)));
  FlatWriter writer(std::move(file));
  HDPS_RETURN_IF_ERROR(writer.Append(BytesOf(of_file)));
  HDPS_RETURN_IF_ERROR(writer.Append(std::as_bytes(std::span(headers))));
  for (size_t t = 0; t < tables.size(); ++t) {
    std::unique_ptr<FlatRows> anew;
    if (!tables[t]->packed()) {
      HDPS_ASSIGN_OR_RETURN(anew, PackedAnew(*tables[t]));
    }
    const FlatArrays arrays = (anew == nullptr ? tables[t] : anew.get())->arrays();
    HDPS_RETURN_IF_ERROR(writer.PadTo(headers[t].rows_offset));
    HDPS_RETURN_IF_ERROR(writer.Append(arrays.rows));
    HDPS_RETURN_IF_ERROR(writer.PadTo(headers[t].slots_offset));
    HDPS_RETURN_IF_ERROR(writer.Append(std::as_bytes(arrays.slots)));
  }
  return writer.Finish(name, rows);
}

Result<FlatTables> MapFlat(FileSystem& files, const std::string& folder, const SavedFile& saved,
                           const SnapshotHeader& expected, const std::vector<TableSlice*>& slices) {
  const std::string path = JoinPath(folder, saved.name);
  HDPS_ASSIGN_OR_RETURN(std::shared_ptr<MappedFile> file, MapFile(files, path));
  const std::span<const std::byte> bytes = file->bytes();
  const auto broken = [&](const std::string& what) {
    return Status(Code::kCorruption, path + ": " + what);
  };
  if (bytes.size() != saved.bytes || HashBytes(bytes) != saved.checksum) {
    return broken("its length or checksum is not that of the manifest");
  }
  FileHeader of_file;
  if (bytes.size() < sizeof(of_file)) return broken("it is too short for its header");
  std::memcpy(&of_file, bytes.data(), sizeof(of_file));
  if (of_file.magic != kMagic) return broken("it holds no rows for serving");
  if (of_file.version != kVersion || of_file.tables_digest != expected.tables_digest ||
      of_file.num_tables != slices.size() || of_file.num_shards != expected.num_shards) {
    return Status(Code::kInvalidArgument,
                  path + ": written by another job, or another version of hdps; export it again");
  }
  if (of_file.shard != expected.shard.value || of_file.clock != expected.clock) {
    return broken("holds shard " + std::to_string(of_file.shard) + " at clock " +
                  std::to_string(of_file.clock));
  }
  std::vector<TableHeader> headers(slices.size());
  if (bytes.size() - sizeof(of_file) < headers.size() * sizeof(TableHeader)) {
    return broken("it is too short for the headers of its tables");
  }
  std::memcpy(headers.data(), bytes.data() + sizeof(of_file), headers.size() * sizeof(TableHeader));
  FlatTables mapped{file, {}};
  for (size_t t = 0; t < headers.size(); ++t) {
    const TableHeader& table = headers[t];
    const WeightFormat format = slices[t]->spec().weights;
    const auto lies_inside = [&](uint64_t offset, uint64_t count, uint64_t unit) {
      return offset % alignof(uint64_t) == 0 && offset <= bytes.size() &&
             count <= (bytes.size() - offset) / unit;
    };
    if (table.dim != slices[t]->dim() || table.format != static_cast<uint32_t>(format) ||
        !lies_inside(table.rows_offset, table.rows_bytes, 1) ||
        !lies_inside(table.slots_offset, table.num_slots, sizeof(uint32_t))) {
      return broken("the header of table " + std::to_string(t) + " is out of range");
    }
    const auto* const slots = reinterpret_cast<const uint32_t*>(bytes.data() + table.slots_offset);
    const FlatArrays arrays{
        bytes.subspan(table.rows_offset, table.rows_bytes), {slots, table.num_slots}, file};
    Result<std::unique_ptr<FlatRows>> rows = FlatRows::Over(format, table.dim, arrays);
    if (!rows.ok()) return broken(rows.status().message());
    mapped.tables.push_back(*std::move(rows));
  }
  file->Drop();  // To read it once for its checksum has brought all of it.
  return mapped;
}

}  // namespace hdps
