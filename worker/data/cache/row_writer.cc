// Fills blocks with rows, and writes them behind each other where they go to a file.
#include "worker/data/cache/row_writer.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "common/base/byte_count.h"
#include "common/base/hash.h"
#include "common/platform/output_file.h"
#include "worker/data/cache/row_file.h"

namespace hdps {
namespace {

template <typename T>
std::span<const std::byte> BytesOf(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

// The file while it is written. It has its name only when it is whole.
class RowWriter::RowFile {
 public:
  static Result<std::unique_ptr<RowFile>> Create(FileSystem& files, const std::string& path,
                                                 const std::string& holder) {
    std::unique_ptr<RowFile> made(new RowFile());
    const size_t slash = path.rfind('/');
    if (slash != std::string::npos) {
      HDPS_RETURN_IF_ERROR(files.MakeDirectoriesUnsynced(path.substr(0, slash)));
    }
    HDPS_ASSIGN_OR_RETURN(made->lock_, files.Lock(path + ".lock", holder));
    HDPS_ASSIGN_OR_RETURN(made->file_, ReplaceAtomically(files, path, Survives::kProcess));
    return made;
  }

  uint64_t bytes() const { return bytes_; }
  Status Append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const size_t part = std::min<size_t>(bytes.size(), kRowBlockBytes - bytes_ % kRowBlockBytes);
      piece_->Append(bytes.first(part));
      HDPS_RETURN_IF_ERROR(file_->Append(bytes.first(part)));
      bytes_ += part;
      bytes = bytes.subspan(part);
      if (bytes_ % kRowBlockBytes == 0) EndPiece();
    }
    return {};
  }
  Status Align() {
    constexpr std::byte kZeros[8] = {};
    return Append(std::span(kZeros).first((8 - bytes_ % 8) % 8));
  }
  // Appends hashes and footer, and gives the file its name.
  Status Finish(RowFooter footer) {
    footer.content_bytes = bytes_;
    if (bytes_ % kRowBlockBytes != 0) EndPiece();
    footer.hashes_hash = HashBytes(BytesOf(hashes_));
    const std::span<const std::byte> bytes = std::as_bytes(std::span(&footer, 1));
    footer.own_hash = HashBytes(bytes.first(offsetof(RowFooter, own_hash)));
    HDPS_RETURN_IF_ERROR(file_->Append(BytesOf(hashes_)));
    HDPS_RETURN_IF_ERROR(file_->Append(bytes));
    return file_->Close();
  }

 private:
  RowFile() = default;
  void EndPiece() {
    hashes_.push_back(piece_->Value());
    piece_ = std::make_unique<HashStream>();
  }

  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<WritableFile> file_;
  uint64_t bytes_ = 0;
  std::unique_ptr<HashStream> piece_ = std::make_unique<HashStream>();
  std::vector<uint64_t> hashes_;
};

RowWriter::RowWriter(FileSystem& files, RowWriterOptions options, std::shared_ptr<RowBudget> budget)
    : files_(files),
      options_(std::move(options)),
      share_(std::make_unique<BudgetShare>(std::move(budget))) {}

RowWriter::~RowWriter() = default;

void RowWriter::Add(const CachedRun& run) {
  for (size_t i = 0; status_.ok() && i < run.places().size(); ++i) {
    status_ = AddRow(run.places()[i], run.BytesOf(i));
  }
  if (status_.ok()) return;
  blocks_.clear();
  index_.clear();
  file_.reset();
  share_->Shrink(share_->bytes());
}

Status RowWriter::AddRow(const CachedRun::Place& place, std::span<const std::byte> bytes) {
  HDPS_RETURN_IF_ERROR(GrowIndex(place.row));
  if (!index_[place.row].is_absent()) return {};
  if (bytes.size() > kRowBlockBytes) {
    return {Code::kResourceExhausted,
            "a row takes " + ShowByteCount(bytes.size()) + ", more than a block of rows"};
  }
  if (bytes.size() > kRowBlockBytes - used_) HDPS_RETURN_IF_ERROR(NewBlock());
  const uint64_t block = first_block_ + blocks_.size() - 1;
  std::memcpy(blocks_.back().get() + used_, bytes.data(), bytes.size());
  index_[place.row] = RowEntry(block * kRowBlockBytes + used_, place.window_lines);
  used_ += bytes.size();
  ++rows_;
  return {};
}

Status RowWriter::GrowIndex(uint64_t row) {
  if (row < index_.size()) return {};
  // In steps, so that the budget is seldom asked.
  constexpr uint64_t kStepRows = uint64_t{1} << 16;
  if (row >= index_.capacity()) {
    const uint64_t rows = std::max<uint64_t>(row + kStepRows, index_.capacity() * 2);
    if (!share_->Grow((rows - index_.capacity()) * sizeof(RowEntry))) {
      return {Code::kResourceExhausted, "the index of the rows, 8 bytes a row, takes more than " +
                                            ShowByteCount(share_->bytes_max())};
    }
    index_.reserve(rows);
  }
  index_.resize(row + 1);
  return {};
}

Status RowWriter::EndBlock() {
  if (blocks_.empty()) return {};
  std::memset(blocks_.back().get() + used_, 0, kRowBlockBytes - used_);
  if (file_ == nullptr) return {};
  return file_->Append({blocks_.back().get(), kRowBlockBytes});
}

Status RowWriter::NewBlock() {
  HDPS_RETURN_IF_ERROR(EndBlock());
  used_ = 0;
  if (file_ == nullptr && (!options_.in_memory || !share_->Grow(kRowBlockBytes))) {
    HDPS_RETURN_IF_ERROR(GoToFile());
  }
  if (file_ != nullptr && !blocks_.empty()) {
    ++first_block_;  // The last block is used again.
    return {};
  }
  blocks_.push_back(NewPageBlock(kRowBlockBytes));
  return {};
}

Status RowWriter::GoToFile() {
  if (options_.path.empty()) {
    return {Code::kResourceExhausted,
            "the rows take more than " + ShowByteCount(share_->bytes_max()) + " of memory"};
  }
  HDPS_ASSIGN_OR_RETURN(file_, RowFile::Create(files_, options_.path, options_.holder));
  for (const CachedRows::Block& block : blocks_) {
    HDPS_RETURN_IF_ERROR(file_->Append({block.get(), kRowBlockBytes}));
  }
  if (blocks_.empty()) return {};
  // Of the blocks one is left, to be filled again.
  share_->Shrink((blocks_.size() - 1) * kRowBlockBytes);
  first_block_ = blocks_.size() - 1;
  blocks_.resize(1);
  return {};
}

Result<std::shared_ptr<const CachedRows>> RowWriter::Finish(const std::string& stamp) {
  HDPS_RETURN_IF_ERROR(status_);
  if (rows_ != index_.size()) {
    return Status(Code::kInvalidArgument, std::to_string(index_.size() - rows_) +
                                              " rows before the last one were not read");
  }
  // Without a row there is no block yet.
  if (file_ == nullptr && !options_.in_memory) HDPS_RETURN_IF_ERROR(GoToFile());
  const uint64_t last = blocks_.empty() ? 0 : used_;
  const uint64_t before = blocks_.empty() ? 0 : first_block_ + blocks_.size() - 1;
  const uint64_t bytes = before * kRowBlockBytes + last;
  if (file_ == nullptr) {
    return std::make_shared<const CachedRows>(std::move(blocks_), bytes, std::move(index_), stamp,
                                              std::move(share_));
  }
  RowFooter footer;
  footer.rows = rows_;
  footer.row_bytes = bytes;
  if (!blocks_.empty()) HDPS_RETURN_IF_ERROR(file_->Append({blocks_.back().get(), last}));
  HDPS_RETURN_IF_ERROR(file_->Align());
  footer.index_offset = file_->bytes();
  HDPS_RETURN_IF_ERROR(file_->Append(BytesOf(index_)));
  footer.stamp_bytes = stamp.size();
  HDPS_RETURN_IF_ERROR(file_->Append(std::as_bytes(std::span<const char>(stamp))));
  HDPS_RETURN_IF_ERROR(file_->Align());
  HDPS_RETURN_IF_ERROR(file_->Finish(footer));
  file_.reset();
  index_ = {};
  share_->Shrink(share_->bytes());
  return CachedRows::Open(files_, options_.path);
}

}  // namespace hdps
