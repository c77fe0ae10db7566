// Streams the files of a shard into one file of FlatRows.
#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

#include "common/base/hash.h"
#include "common/job/spec/table_spec.h"
#include "common/protocol/manifest.h"
#include "embedding/flat_file.h"
#include "embedding/flat_format.h"
#include "embedding/memory/page_memory.h"
#include "embedding/memory/weight_format.h"
#include "embedding/snapshot/row_taker.h"

namespace hdps {
namespace {

constexpr size_t kPieceBytes = 1 << 20;

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

// Writes the rows of one table into a file, as they lie in FlatRows. Files of the chain come from
// the newest to the oldest, so of each key the first row counts, unless the key was removed later.
class NewestRows : public RowTaker {
 public:
  NewestRows(const TableSlice& slice, std::string path)
      : format_(slice.spec().weights),
        dim_(slice.dim()),
        row_bytes_(FlatRows::RowBytes(format_, dim_)),
        path_(std::move(path)) {}

  Status Open(FileSystem& files) {
    HDPS_ASSIGN_OR_RETURN(file_, files.Create(path_));
    return {};
  }
  // Announces an older file, of which none is behind if it is the `last`.
  void NextFile(bool last) {
    const auto middle = static_cast<std::ptrdiff_t>(newer_.size());
    std::ranges::sort(keys_);
    newer_.insert(newer_.end(), keys_.begin(), keys_.end());
    std::inplace_merge(newer_.begin(), newer_.begin() + middle, newer_.end());
    keys_ = {};
    last_ = last;
  }
  Status Begin(uint64_t) override { return {}; }
  Status Store(std::span<const Key> keys, std::span<const float> rows) override {
    const size_t row_floats = keys.empty() ? 0 : rows.size() / keys.size();
    for (size_t k = 0; k < keys.size(); ++k) {
      if (std::ranges::binary_search(newer_, keys[k])) continue;
      if (!last_) keys_.push_back(keys[k]);
      const size_t at = written_.size();
      written_.resize(at + row_bytes_);  // A row may end in bytes of 0.
      std::memcpy(&written_[at], &keys[k], sizeof(Key));
      WriteWeights(format_, rows.subspan(k * row_floats, dim_), &written_[at] + sizeof(Key));
      ++num_rows_;
      if (written_.size() >= kPieceBytes) HDPS_RETURN_IF_ERROR(Flush());
    }
    return {};
  }
  void Erase(std::span<const Key> keys) override {
    keys_.insert(keys_.end(), keys.begin(), keys.end());
  }
  // After it the file is complete, and only its rows are needed.
  Status Close() {
    HDPS_RETURN_IF_ERROR(Flush());
    HDPS_RETURN_IF_ERROR(file_->Close());
    if (num_rows_ > FlatRows::kPlacesMax) return FlatRows::TooMany(num_rows_);
    newer_ = {};
    written_ = {};
    return {};
  }

  uint64_t num_rows() const { return num_rows_; }
  // Returns the header of the table, whose arrays follow behind `end`.
  FlatTableHeader Header(uint64_t end) const {
    const auto aligned = [](uint64_t offset) {
      return (offset + kFlatAlignment - 1) / kFlatAlignment * kFlatAlignment;
    };
    FlatTableHeader header;
    header.dim = dim_;
    header.format = static_cast<uint32_t>(format_);
    header.rows_offset = aligned(end);
    header.rows_bytes = num_rows_ * row_bytes_;
    header.slots_offset = aligned(header.rows_offset + header.rows_bytes);
    header.num_slots = FlatRows::SlotsFor(num_rows_);
    return header;
  }
  // Copies the rows behind each other, and then their index.
  Status CopyTo(const FlatTableHeader& header, FileSystem& files, FlatWriter* writer) const {
    HDPS_RETURN_IF_ERROR(writer->PadTo(header.rows_offset));
    const PageMemory memory(header.num_slots * sizeof(uint32_t));
    const std::span<uint32_t> slots(reinterpret_cast<uint32_t*>(memory.data()), header.num_slots);
    HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<SequentialFile> from, files.OpenSequential(path_));
    std::vector<std::byte> rows(std::max<size_t>(1, kPieceBytes / row_bytes_) * row_bytes_);
    for (uint64_t place = 0; place < num_rows_;) {
      const size_t wanted = std::min<uint64_t>(rows.size(), (num_rows_ - place) * row_bytes_);
      for (size_t filled = 0; filled < wanted;) {
        HDPS_ASSIGN_OR_RETURN(const size_t read,
                              from->Read(std::span(rows).subspan(filled, wanted - filled)));
        if (read == 0) return {Code::kIoError, path_ + ": it was cut while it was copied"};
        filled += read;
      }
      for (size_t at = 0; at < wanted; at += row_bytes_) {
        Key key;
        std::memcpy(&key, &rows[at], sizeof(key));
        FlatRows::AddSlot(slots, key, static_cast<uint32_t>(place++));
      }
      HDPS_RETURN_IF_ERROR(writer->Append(std::span(rows).first(wanted)));
    }
    HDPS_RETURN_IF_ERROR(writer->PadTo(header.slots_offset));
    return writer->Append(std::as_bytes(slots));
  }

 private:
  Status Flush() {
    HDPS_RETURN_IF_ERROR(file_->Append(written_));
    written_.clear();
    return {};
  }

  const WeightFormat format_;
  const uint32_t dim_;
  const size_t row_bytes_;
  const std::string path_;
  std::unique_ptr<WritableFile> file_;
  std::vector<Key> newer_, keys_;  // Keys that newer files name, sorted; those of the file at hand.
  bool last_ = false;
  std::vector<std::byte> written_;  // Not yet in the file.
  uint64_t num_rows_ = 0;
};

template <typename T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

using Tables = std::vector<std::unique_ptr<NewestRows>>;

Status TakeRows(FileSystem& files, const std::vector<CheckpointPart>& chain, ShardId shard,
                const std::vector<TableSlice*>& slices, const Tables& tables) {
  std::vector<RowTaker*> takers;
  for (const auto& table : tables) {
    HDPS_RETURN_IF_ERROR(table->Open(files));
    takers.push_back(table.get());
  }
  HDPS_RETURN_IF_ERROR(ReadShardBackwards(files, chain, shard, slices, takers, [&](bool last) {
    for (const auto& table : tables) table->NextFile(last);
  }));
  for (const auto& table : tables) HDPS_RETURN_IF_ERROR(table->Close());
  return {};
}

Result<SavedFile> WriteTables(FileSystem& files, const std::string& folder,
                              const Manifest& manifest, ShardId shard, const Tables& tables) {
  const FlatFileHeader of_file{.num_tables = static_cast<uint32_t>(tables.size()),
                               .tables_digest = manifest.tables_digest,
                               .shard = shard.value,
                               .num_shards = manifest.num_shards,
                               .clock = manifest.clock};
  std::vector<FlatTableHeader> headers;
  uint64_t end = sizeof(of_file) + tables.size() * sizeof(FlatTableHeader), rows = 0;
  for (const auto& table : tables) {
    headers.push_back(table->Header(end));
    end = headers.back().slots_offset + headers.back().num_slots * sizeof(uint32_t);
    rows += table->num_rows();
  }
  const std::string name = FlatName(shard);
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files.Create(JoinPath(folder, name)));
  FlatWriter writer(std::move(file));
  HDPS_RETURN_IF_ERROR(writer.Append(BytesOf(of_file)));
  HDPS_RETURN_IF_ERROR(writer.Append(std::as_bytes(std::span(headers))));
  for (size_t t = 0; t < tables.size(); ++t) {
    HDPS_RETURN_IF_ERROR(tables[t]->CopyTo(headers[t], files, &writer));
  }
  return writer.Finish(name, rows);
}

}  // namespace

Result<SavedFile> WriteFlat(FileSystem& files, const std::string& folder,
                            const std::vector<CheckpointPart>& chain, ShardId shard,
                            const std::vector<TableSlice*>& slices) {
  const std::string rows_folder = JoinPath(folder, FlatName(shard) + ".rows");
  HDPS_RETURN_IF_ERROR(files.MakeDirectoriesUnsynced(rows_folder));
  Tables tables;
  for (const TableSlice* const slice : slices) {
    const std::string path = JoinPath(rows_folder, std::to_string(tables.size()));
    tables.push_back(std::make_unique<NewestRows>(*slice, path));
  }
  const auto write = [&]() -> Result<SavedFile> {
    HDPS_RETURN_IF_ERROR(TakeRows(files, chain, shard, slices, tables));
    return WriteTables(files, folder, chain.back().manifest, shard, tables);
  };
  Result<SavedFile> written = write();
  HDPS_RETURN_IF_ERROR(files.RemoveAll(rows_folder));
  return written;
}

}  // namespace hdps
