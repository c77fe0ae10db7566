// Verifies a file of FlatRows, and finds its arrays.
#include "embedding/flat_file.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>

#include "common/base/hash.h"
#include "common/job/spec/table_spec.h"
#include "embedding/flat_format.h"

namespace hdps {
namespace {

// The bytes are read in pieces: to look at them in the mapping would bring all of them to memory.
Status CheckBytes(FileSystem& files, const std::string& path, const SavedFile& saved) {
  constexpr uint64_t kPieceBytes = 1 << 20;
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<SequentialFile> file, files.OpenSequential(path));
  HashStream hash;
  uint64_t bytes = 0;
  std::vector<std::byte> piece(std::min(kPieceBytes, saved.bytes + 1));
  while (true) {
    HDPS_ASSIGN_OR_RETURN(const size_t read, file->Read(piece));
    if (read == 0) break;
    hash.Append(std::span(piece).first(read));
    bytes += read;
  }
  if (bytes == saved.bytes && hash.Value() == saved.checksum) return {};
  return {Code::kCorruption, path + ": its length or checksum is not that of the manifest"};
}

// Checks the header of a file against what is expected, and returns those of its tables.
Result<std::vector<FlatTableHeader>> ReadHeaders(const std::string& path,
                                                 std::span<const std::byte> bytes,
                                                 const SnapshotHeader& expected,
                                                 size_t num_tables) {
  const auto broken = [&](const std::string& what) {
    return Status(Code::kCorruption, path + ": " + what);
  };
  FlatFileHeader of_file;
  if (bytes.size() < sizeof(of_file)) return broken("it is too short for its header");
  std::memcpy(&of_file, bytes.data(), sizeof(of_file));
  if (of_file.magic != kFlatMagic) return broken("it holds no rows for serving");
  if (of_file.version != kFlatVersion || of_file.tables_digest != expected.tables_digest ||
      of_file.num_tables != num_tables || of_file.num_shards != expected.num_shards) {
    return Status(Code::kInvalidArgument,
                  path + ": written by another job, or another version of hdps; export it again");
  }
  if (of_file.shard != expected.shard.value || of_file.clock != expected.clock) {
    return broken("holds shard " + std::to_string(of_file.shard) + " at clock " +
                  std::to_string(of_file.clock));
  }
  std::vector<FlatTableHeader> headers(num_tables);
  const size_t needed = headers.size() * sizeof(FlatTableHeader);
  if (bytes.size() - sizeof(of_file) < needed) {
    return broken("it is too short for the headers of its tables");
  }
  std::memcpy(headers.data(), bytes.data() + sizeof(of_file), needed);
  return headers;
}

}  // namespace

std::string FlatName(ShardId shard) {
  char name[32];
  std::snprintf(name, sizeof(name), "shard_%03u.flat", shard.value);
  return name;
}

Result<FlatTables> MapFlat(FileSystem& files, const std::string& folder, const SavedFile& saved,
                           const SnapshotHeader& expected, const std::vector<TableSlice*>& slices) {
  const std::string path = JoinPath(folder, saved.name);
  HDPS_RETURN_IF_ERROR(CheckBytes(files, path, saved));
  HDPS_ASSIGN_OR_RETURN(std::shared_ptr<MappedFile> file, MapFile(files, path));
  const std::span<const std::byte> bytes = file->bytes();
  HDPS_ASSIGN_OR_RETURN(const std::vector<FlatTableHeader> headers,
                        ReadHeaders(path, bytes, expected, slices.size()));
  FlatTables mapped{file, {}};
  for (size_t t = 0; t < headers.size(); ++t) {
    const FlatTableHeader& table = headers[t];
    const WeightFormat format = slices[t]->spec().weights;
    const auto lies_inside = [&](uint64_t offset, uint64_t count, uint64_t unit) {
      return offset % alignof(uint64_t) == 0 && offset <= bytes.size() &&
             count <= (bytes.size() - offset) / unit;
    };
    if (table.dim != slices[t]->dim() || table.format != static_cast<uint32_t>(format) ||
        !lies_inside(table.rows_offset, table.rows_bytes, 1) ||
        !lies_inside(table.slots_offset, table.num_slots, sizeof(uint32_t))) {
      return Status(Code::kCorruption,
                    path + ": the header of table " + std::to_string(t) + " is out of range");
    }
    const auto* const slots = reinterpret_cast<const uint32_t*>(bytes.data() + table.slots_offset);
    const FlatArrays arrays{bytes.subspan(table.rows_offset, table.rows_bytes),
                            {slots, table.num_slots},
                            file,
                            [&file] { file->Drop(); }};
    Result<std::unique_ptr<FlatRows>> rows = FlatRows::Over(format, table.dim, arrays);
    if (!rows.ok()) return Status(Code::kCorruption, path + ": " + rows.status().message());
    mapped.tables.push_back(*std::move(rows));
  }
  file->Drop();
  return mapped;
}

}  // namespace hdps
