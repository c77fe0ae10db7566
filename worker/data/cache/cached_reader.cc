// Passes the places of rows through the window, and unpacks the rows of a batch together.
#include "worker/data/cache/cached_reader.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "worker/data/cache/cached_rows.h"
#include "worker/data/cache/row_caches.h"
#include "worker/data/cache/stream_stamp.h"
#include "worker/data/item_pool.h"
#include "worker/data/shuffle_window.h"

namespace hdps {

bool ReadsFromCache(const ReaderOptions& options) {
  return options.cache != nullptr && options.bad_rows == BadRows::kCounted &&
         options.LabelsWanted()[0].num_classes != kLabelsNotRead;
}

namespace {

// Gives the places of kept rows in the order in which a ShuffleWindow gives their lines.
class EntryStream {
 public:
  // window_rows 0: rows come in their order.
  EntryStream(uint64_t window_rows, size_t window_bytes)
      : window_rows_(std::min<uint64_t>(window_rows, UINT32_MAX - 1)),
        window_bytes_(window_bytes) {}

  void Restart(const CachedRows* rows, uint64_t seed) {
    rows_ = rows;
    draws_.Restart(seed);
    window_.clear();
    next_row_ = window_lines_ = 0;
    damaged_ = false;
  }
  // Returns false at the end, or when a place is damaged().
  bool Next(RowEntry* entry) {
    if (window_rows_ == 0) return Take(entry);
    while (window_.size() < window_rows_ && window_lines_ * kCacheLineBytes < window_bytes_) {
      RowEntry added;
      if (!Take(&added)) break;
      window_lines_ += added.window_lines();
      window_.push_back(added);
    }
    if (window_.empty() || damaged_) return false;
    const size_t size = window_.size(), chosen = draws_.Next(size);
    __builtin_prefetch(&window_[draws_.Peek(WindowDraws::kPrefetch - 1, size)]);
    *entry = window_[chosen];
    window_[chosen] = window_.back();
    window_.pop_back();
    window_lines_ -= entry->window_lines();
    return true;
  }
  bool damaged() const { return damaged_; }
  uint64_t next_row() const { return next_row_; }

 private:
  static constexpr uint64_t kCacheLineBytes = 64;
  bool Take(RowEntry* entry) {
    if (next_row_ == rows_->num_rows() || damaged_) return false;
    damaged_ = !rows_->EntryOf(next_row_, entry);
    ++next_row_;
    return !damaged_;
  }

  const uint64_t window_rows_;
  const size_t window_bytes_;
  const CachedRows* rows_ = nullptr;
  WindowDraws draws_;
  std::vector<RowEntry> window_;
  uint64_t next_row_ = 0;
  uint64_t window_lines_ = 0;  // Of the rows in the window.
  bool damaged_ = false;
};

class CachedReader : public BatchReader {
 public:
  CachedReader(const ReaderInput& input, std::unique_ptr<RowAdder> adder,
               std::unique_ptr<BatchReader> text, KeepRows keep)
      : files_(input.files),
        data_(input.data),
        paths_(input.paths),
        options_(input.options),
        form_(options_.items != nullptr ? CachedForm::kBase : CachedForm::kDerived),
        adder_(std::move(adder)),
        text_(std::move(text)),
        keep_(std::move(keep)),
        entries_(options_.shuffle ? input.data.shuffle_rows : 0, options_.window_bytes) {}
  ~CachedReader() override { EndWriting(/*whole=*/false); }

  Status StartEpoch(uint32_t epoch, uint64_t skip_steps) override {
    EndWriting(/*whole=*/false);
    epoch_ = epoch;
    rows_ = nullptr;
    // Where the files cannot be looked at, the reader of text says why.
    Result<StreamStamp> stamp = StampOfStream(files_, data_, paths_, options_, form_);
    if (!stamp.ok()) return text_->StartEpoch(epoch, skip_steps);
    stamp_ = *std::move(stamp);
    rows_ = options_.cache->Find(stamp_);
    if (rows_ != nullptr) return StartKept(skip_steps);
    // A pass that begins later does not see all rows.
    if (keep_ && skip_steps == 0) {
      writer_ = options_.cache->Begin(stamp_, options_.num_parts, options_.executor);
    }
    if (keep_) keep_(writer_.get());
    return text_->StartEpoch(epoch, skip_steps);
  }

  Result<std::optional<Batch>> Next() override {
    if (rows_ != nullptr) return NextKept();
    Result<std::optional<Batch>> batch = text_->Next();
    if (!batch.ok() || !batch->has_value()) EndWriting(batch.ok());
    return batch;
  }

  uint64_t bad_rows() const override {
    return rows_ != nullptr ? adder_->bad_rows() : text_->bad_rows();
  }
  void SetBadRows(uint64_t count) override {
    rows_ != nullptr ? adder_->Restart(count) : text_->SetBadRows(count);
  }
  uint64_t bytes_read() const override { return text_->bytes_read() + kept_bytes_; }
  double progress() const override {
    if (rows_ == nullptr) return text_->progress();
    if (rows_->num_rows() == 0) return 1;
    return static_cast<double>(entries_.next_row()) / static_cast<double>(rows_->num_rows());
  }

 private:
  Status StartKept(uint64_t skip_steps) {
    if (options_.items != nullptr) HDPS_RETURN_IF_ERROR(options_.items->Collect());
    adder_->Restart();
    entries_.Restart(rows_.get(), ShuffleSeed(options_, epoch_));
    row_bytes_ = rows_->num_rows() == 0 ? 0 : rows_->bytes() / rows_->num_rows();
    first_.clear();
    filled_ = position_ = 0;
    ended_ = false;
    const uint64_t skip_rows = skip_steps * options_.batch_size;
    for (RowEntry entry; position_ < skip_rows && NextEntry(&entry);) ++position_;
    return entries_.damaged() ? GoOnWithText(skip_steps, 0) : Status();
  }

  bool NextEntry(RowEntry* entry) {
    const bool found = entries_.Next(entry);
    if (found && options_.fill_last && position_ < options_.batch_size) first_.push_back(*entry);
    return found;
  }

  Result<std::optional<Batch>> NextKept() {
    if (ended_) return std::optional<Batch>();
    const uint64_t first_row = position_, bad_rows = adder_->bad_rows();
    own_.clear();
    for (RowEntry entry; position_ - first_row < options_.batch_size; ++position_) {
      ended_ = !NextEntry(&entry);
      if (ended_ && (position_ == first_row || first_.empty())) break;
      if (ended_) entry = first_[filled_++ % first_.size()];
      if (options_.Owns(position_, first_row)) own_.push_back(entry);
    }
    bool damaged = entries_.damaged();
    if (!damaged && position_ == first_row) return std::optional<Batch>();
    BatchBuilder builder = adder_->NewBatch(own_.size());
    RowPlace place{.epoch = epoch_, .position = first_row + options_.FirstOwn(first_row)};
    for (size_t i = 0; !damaged && i < own_.size(); ++i) {
      constexpr size_t kAhead = 8, kPrefetchBytesMax = 1024;
      if (i + kAhead < own_.size()) {
        rows_->Prefetch(own_[i + kAhead], std::min<size_t>(row_bytes_, kPrefetchBytesMax));
      }
      std::span<const std::byte> bytes;
      damaged = !rows_->BytesAt(own_[i], &bytes);
      if (damaged) break;
      HDPS_ASSIGN_OR_RETURN(const bool added, adder_->AddPacked(bytes, place, &builder));
      damaged = !added;
      place.position += options_.Stride();
      ++place.number;
    }
    if (damaged) {
      HDPS_RETURN_IF_ERROR(GoOnWithText(first_row / options_.batch_size, bad_rows));
      return text_->Next();
    }
    kept_bytes_ += own_.size() * row_bytes_;
    return std::optional<Batch>(builder.Finish(first_row));
  }

  // Reads the epoch as text behind its first `steps`, which had so many bad rows.
  Status GoOnWithText(uint64_t steps, uint64_t bad_rows) {
    options_.cache->Damaged(stamp_, *rows_);
    rows_ = nullptr;
    HDPS_RETURN_IF_ERROR(text_->StartEpoch(epoch_, steps));
    text_->SetBadRows(bad_rows);
    return {};
  }

  void EndWriting(bool whole) {
    if (writer_ == nullptr) return;
    keep_(nullptr);
    const Result<StreamStamp> now = StampOfStream(files_, data_, paths_, options_, form_);
    options_.cache->End(stamp_, std::move(writer_), whole, now.ok() ? now->text : "");
  }

  FileSystem& files_;
  const DataSpec data_;
  const std::vector<std::string> paths_;
  const ReaderOptions options_;
  const CachedForm form_;
  const std::unique_ptr<RowAdder> adder_;
  const std::unique_ptr<BatchReader> text_;
  const KeepRows keep_;

  uint32_t epoch_ = 0;
  StreamStamp stamp_;
  std::shared_ptr<const CachedRows> rows_;  // Null: the epoch is read as text.
  std::unique_ptr<RowWriter> writer_;       // Null: its rows are not kept.
  EntryStream entries_;
  std::vector<RowEntry> own_;    // Of the current batch.
  std::vector<RowEntry> first_;  // Of the first step, if the last one is filled up.
  uint64_t filled_ = 0;          // Rows in the last step that are those of the first.
  uint64_t position_ = 0;
  uint64_t row_bytes_ = 0;   // Of a row, on average.
  uint64_t kept_bytes_ = 0;  // Of the rows given, about.
  bool ended_ = true;
};

}  // namespace

std::unique_ptr<BatchReader> NewCachedReader(const ReaderInput& input,
                                             std::unique_ptr<RowAdder> rows,
                                             std::unique_ptr<BatchReader> text, KeepRows keep) {
  return std::make_unique<CachedReader>(input, std::move(rows), std::move(text), std::move(keep));
}

}  // namespace hdps
