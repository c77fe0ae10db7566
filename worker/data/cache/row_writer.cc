// Fills blocks with rows, and writes them behind each other where they go to a file.
#include "worker/data/cache/row_writer.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "common/base/byte_count.h"

namespace hdps {
RowWriter::RowWriter(FileSystem& files, RowWriterOptions options, std::shared_ptr<RowBudget> budget)
    : files_(files),
      options_(std::move(options)),
      share_(std::make_unique<BudgetShare>(std::move(budget))) {}

RowWriter::~RowWriter() { EndFile(); }

void RowWriter::EndFile() {
  if (file_ != nullptr) file_->GiveUp();
  file_.reset();
}

void RowWriter::Add(const CachedRun& run) {
  for (size_t i = 0; status_.ok() && i < run.places().size(); ++i) {
    // Rows come in the order of a shuffle, so their places in the index are far apart.
    constexpr size_t kAhead = 8;
    const uint64_t soon = i + kAhead < run.places().size() ? run.places()[i + kAhead].row : 0;
    if (soon < index_.size()) __builtin_prefetch(&index_[soon], 1);
    status_ = AddRow(run.places()[i], run.BytesOf(i));
  }
  if (status_.ok()) return;
  blocks_.clear();
  index_.clear();
  EndFile();
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
  return file_ == nullptr ? Status() : file_->Hand(&blocks_.back());
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
  HDPS_ASSIGN_OR_RETURN(
      file_, RowOutput::Create(files_, options_.path, options_.holder, options_.executor));
  for (CachedRows::Block& block : blocks_) HDPS_RETURN_IF_ERROR(file_->Hand(&block));
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
  const std::byte* const last_rows = blocks_.empty() ? nullptr : blocks_.back().get();
  HDPS_RETURN_IF_ERROR(file_->Finish({last_rows, last}, index_, stamp));
  file_.reset();
  index_ = {};
  share_->Shrink(share_->bytes());
  return CachedRows::Open(files_, options_.path);
}

}  // namespace hdps
