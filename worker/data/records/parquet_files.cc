// Writes the batches of Parquet files as lines of cells, a few rows at a time.
#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "worker/data/columnar/column_sources.h"
#include "worker/data/columnar/column_stream.h"
#include "worker/data/header_check.h"
#include "worker/data/records/batch_lines.h"
#include "worker/data/records/packed_lines.h"
#include "worker/data/records/packed_order.h"
#include "worker/data/records/parquet_source.h"
#include "worker/data/records/record_columns.h"
#include "worker/data/records/record_files.h"
#include "worker/data/records/tfrecord_files.h"

namespace hdps {
namespace {

Status Wrong(const std::string& path, const std::string& what) {
  return {Code::kInvalidArgument, path + ": " + what};
}

// What a file has in place of the job's columns.
struct FoundColumns {
  std::vector<uint32_t> index_of_cell;        // Column of each cell in the file, or kAbsent.
  std::vector<ColumnTable::Column> of_cells;  // [cells]; kOther if absent.
};

// Returns the kind that counts when files are compared: how a column was packed does not.
CellKind PlainKind(const CellType& type) {
  const CellKind kind = type.is_dictionary() ? type.values->kind : type.kind;
  if (IsText(kind)) return CellKind::kText;
  return kind == CellKind::kLargeList ? CellKind::kList : kind;
}

bool HaveOneType(const CellType& a, const CellType& b) {
  if (PlainKind(a) != PlainKind(b)) return false;
  return !IsList(a.kind) || PlainKind(*a.values) == PlainKind(*b.values);
}

// The rows of one file.
//
// Invariant: lines_ has the lines of the rows before row_ of batch_ that were not given yet, from
// given_ on.
class ParquetFile : public UnpackedFile {
 public:
  ParquetFile(const std::string& path, std::unique_ptr<ParquetSource> source,
              std::unique_ptr<ColumnStream> stream, BatchLines writer,
              std::optional<PackedLines> packer)
      : path_(path),
        source_(std::move(source)),
        stream_(std::move(stream)),
        writer_(std::move(writer)),
        packer_(std::move(packer)) {}

  Result<size_t> Read(std::span<std::byte> to) override {
    if (given_ == lines_.size()) HDPS_RETURN_IF_ERROR(WriteMore());
    const size_t bytes = std::min(to.size(), lines_.size() - given_);
    if (bytes > 0) std::memcpy(to.data(), lines_.data() + given_, bytes);
    given_ += bytes;
    return bytes;
  }
  uint64_t packed_bytes_read() const override {
    if (source_->num_rows() == 0) return source_->bytes();
    const double share = static_cast<double>(rows_) / static_cast<double>(source_->num_rows());
    return static_cast<uint64_t>(share * static_cast<double>(source_->bytes()));
  }
  bool seekable() const override { return false; }

 private:
  // Writes the next lines; none at the end of the file.
  Status WriteMore() {
    constexpr int64_t kRowsAtOnce = 64;
    lines_.Clear();
    given_ = 0;
    while (batch_ == nullptr || row_ == static_cast<int64_t>(batch_->num_rows())) {
      batch_ = nullptr;
      Result<std::shared_ptr<const ColumnTable>> next = stream_->Next();
      if (!next.ok()) return Damaged(next.status().message());
      if (*next == nullptr) return CheckEnd();
      batch_ = *std::move(next);
      row_ = 0;
    }
    const int64_t end = std::min(row_ + kRowsAtOnce, static_cast<int64_t>(batch_->num_rows()));
    const Status added = packer_.has_value() ? packer_->Add(*batch_, row_, end, &lines_)
                                             : writer_.Add(*batch_, row_, end, &lines_);
    if (!added.ok()) return Wrong(Place(), added.message());
    rows_ += static_cast<uint64_t>(end - row_);
    row_ = end;
    return {};
  }

  Status CheckEnd() const {
    if (rows_ == source_->num_rows()) return {};
    return Damaged("its footer tells of " + std::to_string(source_->num_rows()) +
                   " rows, but there are " + std::to_string(rows_));
  }
  Status Damaged(const std::string& why) const {
    HDPS_RETURN_IF_ERROR(source_->failed());
    if (TellsOfEncryption(why)) {
      return Wrong(path_, "a column of this Parquet file is encrypted: expected one that is not (" +
                              why + ")");
    }
    return Wrong(Place(), "reading the Parquet file from this row on failed (" + why +
                              "): expected a whole file, copy or write it again");
  }
  // Names the next row.
  std::string Place() const { return path_ + ":" + std::to_string(rows_ + 1); }

  const std::string path_;
  const std::unique_ptr<ParquetSource> source_;
  const std::unique_ptr<ColumnStream> stream_;  // Of source_.
  const BatchLines writer_;
  std::optional<PackedLines> packer_;         // In its place, if lines are packed.
  std::shared_ptr<const ColumnTable> batch_;  // Null: the next one is to be read.
  int64_t row_ = 0;                           // Of batch_.
  uint64_t rows_ = 0;                         // Of the file, in lines that were written.
  CellLineWriter lines_;
  size_t given_ = 0;
};

class ParquetFiles : public RecordFiles {
 public:
  ParquetFiles(const DataSpec& data, bool labels_read)
      : readers_(data.columns),
        columns_(RecordColumns(data)),
        order_(data, columns_),
        labels_read_(labels_read) {}

  Result<std::unique_ptr<UnpackedFile>> Open(FileSystem& files, const std::string& path) override {
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<ParquetSource> source, ParquetSource::Open(files, path));
    HDPS_ASSIGN_OR_RETURN(FoundColumns found, Find(path, source->columns()));
    HDPS_RETURN_IF_ERROR(Compare(path, found));
    const std::vector<int32_t> columns = TakeInOrder(&found.index_of_cell);
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<ColumnStream> stream,
                          source->Rows(columns, BatchRows(source->bytes(), source->num_rows())));
    BatchLines writer(stream->columns(), found.index_of_cell);
    std::optional<PackedLines> packer =
        pack_ ? PackedLines::Make(stream->columns(), found.index_of_cell, order_) : std::nullopt;
    return std::unique_ptr<UnpackedFile>(std::make_unique<ParquetFile>(
        path, std::move(source), std::move(stream), std::move(writer), std::move(packer)));
  }
  void PackLines() override { pack_ = true; }

 private:
  // Rows of a batch: so many that its columns stay in a core's cache, fewer where they are long.
  static int64_t BatchRows(uint64_t file_bytes, uint64_t num_rows) {
    constexpr uint64_t kRowsMax = 4096, kBytes = uint64_t{4} << 20;
    const uint64_t row_bytes = file_bytes / std::max<uint64_t>(1, num_rows) + 1;
    return static_cast<int64_t>(std::clamp<uint64_t>(kBytes / row_bytes, 1, kRowsMax));
  }

  // Returns the columns of the file that cells have, ascending, and lets `index_of_cell` refer to
  // these.
  static std::vector<int32_t> TakeInOrder(std::vector<uint32_t>* index_of_cell) {
    std::vector<int32_t> columns;
    for (const uint32_t index : *index_of_cell) {
      if (index != CellOrder::kAbsent) columns.push_back(static_cast<int32_t>(index));
    }
    std::ranges::sort(columns);
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    for (uint32_t& index : *index_of_cell) {
      if (index == CellOrder::kAbsent) continue;
      const auto at = std::ranges::lower_bound(columns, static_cast<int32_t>(index));
      index = static_cast<uint32_t>(at - columns.begin());
    }
    return columns;
  }

  Result<FoundColumns> Find(const std::string& path,
                            const std::vector<ColumnTable::Column>& columns) const {
    FoundColumns found;
    HDPS_ASSIGN_OR_RETURN(found.index_of_cell,
                          FindColumns(columns, columns_, path, labels_read_, "the file"));
    for (const ColumnSpec& column : readers_) {
      if (column.type == ColumnType::kSkip) continue;
      uint32_t& index = found.index_of_cell[CellPlace(columns_, column.cell())];
      if (index == CellOrder::kAbsent) continue;
      const CellType& type = columns[index].type;
      const std::string why = WhyNotReadable(column, type);
      if (why.empty()) continue;
      if (labels_read_ || !MayBeAbsent(column.type)) {
        return Wrong(path, "column '" + Printable(column.cell()) + "' has the type " + type.name +
                               ": " + why);
      }
      index = CellOrder::kAbsent;
    }
    for (const uint32_t index : found.index_of_cell) {
      found.of_cells.push_back(index == CellOrder::kAbsent ? ColumnTable::Column()
                                                           : columns[index]);
    }
    return found;
  }

  // Compares with the file that was opened first.
  Status Compare(const std::string& path, const FoundColumns& found) {
    if (first_path_.empty()) {
      first_path_ = path;
      first_ = found;
      return {};
    }
    const auto name = [](const ColumnTable::Column& column, uint32_t index) {
      return index == CellOrder::kAbsent ? "is not there" : "has the type " + column.type.name;
    };
    for (size_t c = 0; c < columns_.size(); ++c) {
      const uint32_t here = found.index_of_cell[c], there = first_.index_of_cell[c];
      const bool absent = here == CellOrder::kAbsent;
      if (absent == (there == CellOrder::kAbsent) &&
          (absent || HaveOneType(found.of_cells[c].type, first_.of_cells[c].type))) {
        continue;
      }
      return Wrong(path, "column '" + Printable(columns_[c].name) + "' " +
                             name(found.of_cells[c], here) + ", and in " + first_path_ + " it " +
                             name(first_.of_cells[c], there) +
                             ": expected files of one schema; write one of them anew");
    }
    return {};
  }

  const std::vector<ColumnSpec> readers_;  // All columns of the job.
  const std::vector<ColumnSpec> columns_;  // Of the cells.
  const PackedOrder order_;
  const bool labels_read_;
  bool pack_ = false;       // Lines are packed where they can be.
  std::string first_path_;  // Empty: no file was opened.
  FoundColumns first_;
};

}  // namespace

std::shared_ptr<RecordFiles> NewRecordFiles(const DataSpec& data, bool labels_read) {
  if (data.format == DataFormat::kTfrecord) return NewTfrecordFiles();
  if (data.format != DataFormat::kParquet) return nullptr;
  return std::make_shared<ParquetFiles>(data, labels_read);
}

}  // namespace hdps
