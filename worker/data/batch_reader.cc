// Reads the stream of an epoch: lines are shuffled, split by worker, parsed, and collected in
// batches.
#include "worker/data/batch_reader.h"

#include <glog/logging.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/data/formats/row_adder.h"
#include "worker/data/indexed_reader.h"
#include "worker/data/item_pool.h"
#include "worker/data/line_reader.h"
#include "worker/data/shuffle_window.h"

namespace hdps {
namespace {

class StreamReader : public BatchReader {
 public:
  StreamReader(FileSystem& files, const DataSpec& data, const std::vector<std::string>& paths,
               const ReaderOptions& options, std::unique_ptr<RowAdder> rows)
      : options_(options),
        window_rows_(options.shuffle ? data.shuffle_rows : 0),
        rows_(std::move(rows)),
        lines_(
            files, paths, RulesOf(data, options),
            [this](uint32_t file, std::string_view text) { return rows_->TakeHeader(file, text); }),
        window_(window_rows_, kWindowBytesMax) {}

  Status StartEpoch(uint32_t epoch, uint64_t skip_steps) override {
    if (options_.items != nullptr) HDPS_RETURN_IF_ERROR(options_.items->Collect());
    epoch_ = epoch;
    HDPS_RETURN_IF_ERROR(lines_.Start());
    window_.Restart(ShuffleSeed(options_, epoch));
    rows_->Restart();
    lines_ended_ = ended_ = false;
    position_ = 0;
    first_lines_.clear();
    filled_ = 0;
    const uint64_t skip_rows = skip_steps * options_.batch_size;
    for (Line line; position_ < skip_rows; ++position_) {
      HDPS_ASSIGN_OR_RETURN(const bool found, NextLine(&line));
      if (!found) break;
    }
    return {};
  }

  Result<std::optional<Batch>> Next() override {
    if (ended_) return std::optional<Batch>();
    const uint64_t first_row = position_;
    BatchBuilder builder = rows_->NewBatch(options_.batch_size / options_.num_parts + 1);
    uint32_t number = 0;
    for (Line line; position_ - first_row < options_.batch_size; ++position_) {
      HDPS_ASSIGN_OR_RETURN(bool found, NextLine(&line));
      ended_ = !found;
      if (!found && position_ > first_row) found = FirstLine(&line);
      if (!found) break;
      if (position_ % options_.num_parts != options_.part) continue;
      HDPS_RETURN_IF_ERROR(rows_->Add(line, {epoch_, position_, number++}, &builder));
    }
    if (position_ == first_row) return std::optional<Batch>();
    return std::optional<Batch>(builder.Finish(first_row));
  }

  uint64_t bad_rows() const override { return rows_->bad_rows(); }
  void SetBadRows(uint64_t count) override { rows_->Restart(count); }
  uint64_t bytes_read() const override { return lines_.bytes_read(); }
  double progress() const override { return lines_.progress(); }

 private:
  // Returns the next line of the epoch's stream, valid until the next call.
  Result<bool> NextLine(Line* line) {
    HDPS_ASSIGN_OR_RETURN(const bool found, NextShuffled(line));
    if (found && options_.fill_last && position_ < options_.batch_size) {
      first_lines_.push_back({std::string(line->text), line->place});
    }
    return found;
  }

  // Returns the next of the lines with which the last step is filled up, those of the first step
  // one after the other; false: it is not.
  bool FirstLine(Line* line) {
    if (first_lines_.empty()) return false;
    const KeptLine& kept = first_lines_[filled_++ % first_lines_.size()];
    *line = {kept.text, kept.place};
    return true;
  }

  Result<bool> NextShuffled(Line* line) {
    if (window_rows_ == 0) return lines_.Next(line);
    while (!lines_ended_ && !window_.full()) {
      HDPS_ASSIGN_OR_RETURN(const bool found, lines_.Next(line));
      lines_ended_ = !found;
      if (found) window_.Add(*line);
    }
    if (window_.empty()) return false;
    *line = window_.RemoveAny();
    return true;
  }

  const ReaderOptions options_;
  const uint64_t window_rows_;
  const std::unique_ptr<RowAdder> rows_;
  LineReader lines_;
  ShuffleWindow window_;
  bool lines_ended_ = true;
  bool ended_ = true;  // True before the first StartEpoch, too.
  uint32_t epoch_ = 0;
  uint64_t position_ = 0;
  struct KeptLine {
    std::string text;
    LinePlace place;
  };
  std::vector<KeptLine> first_lines_;  // Of the first step, if the last one is filled up.
  uint64_t filled_ = 0;                // Lines in the last step that are those of the first.
};

Status CheckFiles(FileSystem& files, const std::vector<std::string>& paths) {
  if (paths.empty()) {
    return {Code::kInvalidArgument,
            "no data file: expected one or more in data.train or data.eval"};
  }
  for (const std::string& path : paths) {
    if (!files.Exists(path)) {
      return {Code::kInvalidArgument, "data file '" + path +
                                          "' does not exist: expected a file (a relative path is "
                                          "taken from the folder of the job file)"};
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<BatchReader>> NewBatchReader(FileSystem& files, const DataSpec& data,
                                                    const std::vector<std::string>& paths,
                                                    const ReaderOptions& options) {
  CHECK_GT(options.batch_size, 0u);
  CHECK_LT(options.part, options.num_parts);
  HDPS_RETURN_IF_ERROR(CheckFiles(files, paths));
  if (data.format == DataFormat::kCsv && data.delimiter.size() != 1) {
    return Status(Code::kInvalidArgument,
                  "data.delimiter '" + data.delimiter + "': expected one character");
  }
  HDPS_ASSIGN_OR_RETURN(
      std::unique_ptr<RowAdder> rows,
      RowAdder::Make(data, paths, options.LabelsWanted(), options.items, options.bad_rows));
  std::unique_ptr<BatchReader> reader =
      std::make_unique<StreamReader>(files, data, paths, options, std::move(rows));
  if (!options.shuffle || data.shuffle_rows == 0 || options.num_parts < kPartsMany) return reader;
  HDPS_ASSIGN_OR_RETURN(
      rows, RowAdder::Make(data, paths, options.LabelsWanted(), options.items, options.bad_rows));
  return NewIndexedReader({files, data, paths, options}, std::move(rows), std::move(reader));
}

Result<uint64_t> CountRows(FileSystem& files, const DataSpec& data,
                           const std::vector<std::string>& paths, const ReaderOptions& options) {
  HDPS_RETURN_IF_ERROR(CheckFiles(files, paths));
  LineReader lines(files, paths, RulesOf(data, options));
  HDPS_RETURN_IF_ERROR(lines.Start());
  uint64_t rows = 0;
  for (Line line;; ++rows) {
    HDPS_ASSIGN_OR_RETURN(const bool found, lines.Next(&line));
    if (!found) return rows;
  }
}

}  // namespace hdps
