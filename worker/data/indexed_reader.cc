// Passes row numbers through the window, and fetches the rows of a batch together.
#include "worker/data/indexed_reader.h"

#include <algorithm>
#include <utility>

#include "common/job/spec/data_spec.h"
#include "worker/data/columnar/table_files.h"
#include "worker/data/held_out/hold_out.h"
#include "worker/data/idx_file.h"
#include "worker/data/item_pool.h"
#include "worker/data/line_index.h"
#include "worker/data/line_reader.h"
#include "worker/data/records/record_files.h"
#include "worker/data/row_fetcher.h"
#include "worker/data/shuffle_window.h"

namespace hdps {

LineRules FileRulesOf(const DataSpec& data, const std::vector<std::string>& paths,
                      bool labels_read) {
  LineRules rules;
  rules.table = TableOf(data, paths);
  if (rules.table != nullptr) return rules;
  rules.records = NewRecordFiles(data, labels_read);
  if (rules.records != nullptr) return rules;
  rules.header = data.header;
  rules.comment = data.comment;
  if (data.format != DataFormat::kIdx) return rules;
  rules.image_bytes = ImageBytes(data.image_shape);
  rules.image_shape = data.image_shape;
  rules.labels_read = labels_read;
  return rules;
}

LineRules RulesOf(const DataSpec& data, const std::vector<std::string>& paths,
                  const ReaderOptions& options) {
  const RowSide side = data.validation_share > 0 ? options.side : RowSide::kAll;
  LineRules rules =
      FileRulesOf(data, paths, options.LabelsWanted()[0].num_classes != kLabelsNotRead);
  rules.side = side;
  if (side != RowSide::kAll) rules.hold_out = std::make_shared<HoldOut>(data, options.seed);
  return rules;
}

namespace {

class IndexedReader : public BatchReader {
 public:
  IndexedReader(const ReaderInput& input, std::unique_ptr<RowAdder> rows,
                std::unique_ptr<BatchReader> plain)
      : files_(input.files),
        paths_(input.paths),
        options_(input.options),
        window_rows_(input.data.shuffle_rows),
        rows_(std::move(rows)),
        plain_(std::move(plain)),
        rules_(RulesOf(input.data, paths_, options_)),
        lines_(
            files_, paths_, rules_,
            [this](uint32_t file, std::string_view text) { return rows_->TakeHeader(file, text); }),
        fetcher_(files_, paths_, rules_) {}

  Status StartEpoch(uint32_t epoch, uint64_t skip_steps) override {
    epoch_ = epoch;
    if (options_.items != nullptr) HDPS_RETURN_IF_ERROR(options_.items->Collect());
    if (!on_) return plain_->StartEpoch(epoch, skip_steps);
    HDPS_RETURN_IF_ERROR(LookAtFiles());
    if (!indexed_) {
      index_ = LineIndex();
      HDPS_RETURN_IF_ERROR(lines_.Start());
    }
    draws_.Restart(ShuffleSeed(options_, epoch));
    rows_->Restart();
    window_.clear();
    next_row_ = position_ = 0;
    first_rows_.clear();
    filled_ = 0;
    ended_ = false;
    const uint64_t skip_rows = skip_steps * options_.batch_size;
    for (; position_ < skip_rows; ++position_) {
      HDPS_ASSIGN_OR_RETURN(const std::optional<uint64_t> row, NextRow());
      if (!on_) return plain_->StartEpoch(epoch, skip_steps);
      if (!row) break;
    }
    return {};
  }

  Result<std::optional<Batch>> Next() override {
    if (!on_) return plain_->Next();
    if (ended_) return std::optional<Batch>();
    const uint64_t first_row = position_;
    own_.clear();
    for (; position_ - first_row < options_.batch_size; ++position_) {
      HDPS_ASSIGN_OR_RETURN(std::optional<uint64_t> row, NextRow());
      if (!on_) return GoOnPlainly(first_row);
      ended_ = !row;
      if (!row && position_ > first_row && !first_rows_.empty()) {
        row = first_rows_[filled_++ % first_rows_.size()];
      }
      if (!row) break;
      if (options_.Owns(position_, first_row)) own_.push_back(*row);
    }
    if (position_ == first_row) return std::optional<Batch>();
    for (const uint64_t row : own_) HDPS_RETURN_IF_ERROR(fetcher_.Announce(index_, row));
    BatchBuilder builder = rows_->NewBatch(own_.size());
    RowPlace place{.epoch = epoch_, .position = first_row + options_.FirstOwn(first_row)};
    for (const uint64_t row : own_) {
      HDPS_ASSIGN_OR_RETURN(const Line line, fetcher_.Fetch(index_, row));
      HDPS_RETURN_IF_ERROR(rows_->Add(line, place, &builder));
      place.position += options_.Stride();
      ++place.number;
    }
    return std::optional<Batch>(builder.Finish(first_row));
  }

  uint64_t bad_rows() const override { return on_ ? rows_->bad_rows() : plain_->bad_rows(); }
  void SetBadRows(uint64_t count) override {
    on_ ? rows_->Restart(count) : plain_->SetBadRows(count);
  }
  uint64_t bytes_read() const override {
    return lines_.bytes_read() + fetcher_.bytes_read() + plain_->bytes_read();
  }
  double progress() const override {
    if (!on_) return plain_->progress();
    if (!indexed_) return lines_.progress();
    if (index_.num_rows() == 0) return 1;
    return static_cast<double>(next_row_) / static_cast<double>(index_.num_rows());
  }

 private:
  // Discards the index if files have changed since the last epoch.
  Status LookAtFiles() {
    std::vector<FileStamp> stamps;
    for (const std::string& path : paths_) {
      HDPS_ASSIGN_OR_RETURN(stamps.emplace_back(), files_.StampOf(path));
    }
    indexed_ = indexed_ && stamps == stamps_;
    stamps_ = std::move(stamps);
    fetcher_.Close();
    return {};
  }

  // Returns the next row of the epoch's stream, or nothing at its end. Clears on_ if the index
  // cannot be used.
  Result<std::optional<uint64_t>> NextRow() {
    while (window_.size() < window_rows_) {
      HDPS_ASSIGN_OR_RETURN(const bool found, PutRow());
      if (!found) break;
    }
    if (window_.empty() || !on_) return std::optional<uint64_t>();
    const size_t size = window_.size(), chosen = draws_.Next(size);
    __builtin_prefetch(&window_[draws_.Peek(WindowDraws::kPrefetch - 1, size)]);
    const uint64_t row = window_[chosen];
    window_[chosen] = window_.back();
    window_.pop_back();
    if (options_.fill_last && position_ < options_.batch_size) first_rows_.push_back(row);
    return std::optional<uint64_t>(row);
  }

  Result<bool> PutRow() {
    if (indexed_) {
      if (next_row_ == index_.num_rows()) return false;
    } else {
      Line line;
      HDPS_ASSIGN_OR_RETURN(const bool found, lines_.Next(&line));
      if (!found) {
        indexed_ = true;
        return false;
      }
      on_ = Learn(line);
      if (!on_) return false;
    }
    window_.push_back(next_row_++);
    return true;
  }

  // Returns false if the index could not find the line again.
  bool Learn(const Line& line) {
    if (!lines_.seekable()) return false;
    // Counts bytes like the plain window: in whole cache lines.
    constexpr uint64_t kAround = 63;
    if (line.text.size() + kAround > options_.window_bytes / window_rows_) return false;
    return index_.Add(
        {line.place.file, lines_.line_offset(), lines_.next_offset(), line.place.number});
  }

  Result<std::optional<Batch>> GoOnPlainly(uint64_t first_row) {
    const uint64_t bad_rows = rows_->bad_rows();
    index_ = LineIndex();
    window_ = {};
    HDPS_RETURN_IF_ERROR(plain_->StartEpoch(epoch_, first_row / options_.batch_size));
    plain_->SetBadRows(bad_rows);
    return plain_->Next();
  }

  FileSystem& files_;
  const std::vector<std::string> paths_;
  const ReaderOptions options_;
  const uint64_t window_rows_;
  const std::unique_ptr<RowAdder> rows_;
  const std::unique_ptr<BatchReader> plain_;
  bool on_ = true;  // If false, plain_ reads.

  const LineRules rules_;  // Shared by both members below, because rules learn from headers.
  LineReader lines_;
  RowFetcher fetcher_;
  LineIndex index_;
  bool indexed_ = false;           // The index is complete.
  std::vector<FileStamp> stamps_;  // Of the files, when the index was made.
  WindowDraws draws_;
  std::vector<uint64_t> window_;      // Row numbers.
  std::vector<uint64_t> own_;         // Rows of the current batch.
  std::vector<uint64_t> first_rows_;  // Of the first step, if the last one is filled up.
  uint64_t filled_ = 0;               // Rows in the last step that are those of the first.
  uint32_t epoch_ = 0;
  uint64_t next_row_ = 0, position_ = 0;
  bool ended_ = true;  // True before the first StartEpoch, too.
};

}  // namespace

std::unique_ptr<BatchReader> NewIndexedReader(const ReaderInput& input,
                                              std::unique_ptr<RowAdder> rows,
                                              std::unique_ptr<BatchReader> plain) {
  return std::make_unique<IndexedReader>(input, std::move(rows), std::move(plain));
}

}  // namespace hdps
