// Reads the stream of an epoch: lines are shuffled, split by worker, parsed, and collected in
// batches.
#include "worker/data/batch_reader.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/job/data_paths.h"
#include "common/job/kafka/kafka_entry.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/cache/cached_reader.h"
#include "worker/data/cache/row_writer.h"
#include "worker/data/columnar/table_files.h"
#include "worker/data/follow/followed_log.h"
#include "worker/data/formats/row_adder.h"
#include "worker/data/formats/row_lanes.h"
#include "worker/data/indexed_reader.h"
#include "worker/data/item_pool.h"
#include "worker/data/kafka/topic_reader.h"
#include "worker/data/line_reader.h"
#include "worker/data/records/record_files.h"
#include "worker/data/shuffle_window.h"

namespace hdps {
namespace {

// Lets records be packed lines unless rows are held out by their hashes, and looks for more files
// where the log is followed.
LineRules StreamRules(FileSystem& files, const DataSpec& data,
                      const std::vector<std::string>& paths, const ReaderOptions& options) {
  LineRules rules = RulesOf(data, paths, options);
  if (rules.records != nullptr && rules.side == RowSide::kAll) rules.records->PackLines();
  if (options.follow == nullptr) return rules;
  rules.log = std::make_shared<FollowedLog>(files, data, rules.records, options.follow);
  return rules;
}

class StreamReader : public BatchReader {
 public:
  StreamReader(FileSystem& files, const DataSpec& data, const std::vector<std::string>& paths,
               const ReaderOptions& options, std::unique_ptr<RowAdder> rows,
               std::unique_ptr<RowLanes> lanes)
      : options_(options),
        window_rows_(options.shuffle ? data.shuffle_rows : 0),
        rows_(std::move(rows)),
        lanes_(std::move(lanes)),
        lines_(files, paths, StreamRules(files, data, paths, options),
               [this](uint32_t file, std::string_view text) {
                 KnowPaths();
                 return rows_->TakeHeader(file, text);
               }),
        window_(NewWindow(window_rows_, options.window_bytes, TableOf(data, paths) != nullptr)) {}

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
    if (lanes_ != nullptr) return NextByLanes();
    BatchBuilder builder = rows_->NewBatch(options_.RowsOfStep() + 1);
    uint32_t number = 0;
    for (Line line; position_ - first_row < options_.batch_size; ++position_) {
      HDPS_ASSIGN_OR_RETURN(const bool found, NextOfStep(first_row, &line));
      if (!found) break;
      if (options_.Owns(position_, first_row)) {
        HDPS_RETURN_IF_ERROR(rows_->Add(line, {epoch_, position_, number++}, &builder));
      } else if (writer_ != nullptr) {
        rows_->Pack(line);
      }
      KeepRun(kRunBytes);
    }
    KeepRun(0);
    if (position_ == first_row) return std::optional<Batch>();
    return std::optional<Batch>(builder.Finish(first_row));
  }

  // Gives all rows of the next epoch, of this part or not, to `writer`; null: of none any more.
  void KeepRows(RowWriter* writer) {
    writer_ = writer;
    run_.Clear();
    rows_->PackInto(writer == nullptr ? nullptr : &run_);
    if (lanes_ != nullptr) lanes_->PackRows(writer != nullptr);
  }

  void Stop() override {
    if (options_.follow != nullptr) options_.follow->Stop();
  }
  uint64_t bad_rows() const override { return rows_->bad_rows(); }
  void SetBadRows(uint64_t count) override { rows_->Restart(count); }
  uint64_t bytes_read() const override { return lines_.bytes_read(); }
  double progress() const override { return lines_.progress(); }

 private:
  // The window of a table has as many rows as if it held their numbers alone.
  static ShuffleWindow NewWindow(uint64_t rows, size_t bytes_max, bool of_table) {
    constexpr uint64_t kNumberBytes = 64;  // A row number takes a cache line.
    if (!of_table) return {rows, bytes_max};
    return {std::min<uint64_t>(rows, bytes_max / kNumberBytes), SIZE_MAX};
  }

  // Does what Next() does, but takes all lines of the batch first and then parses them in parallel.
  Result<std::optional<Batch>> NextByLanes() {
    const uint64_t first_row = position_;
    lanes_->Clear();
    for (Line line; position_ - first_row < options_.batch_size; ++position_) {
      HDPS_ASSIGN_OR_RETURN(const bool found, NextOfStep(first_row, &line));
      if (!found) break;
      if (options_.Owns(position_, first_row)) {
        lanes_->Add(line, position_);
      } else if (writer_ != nullptr) {
        rows_->Pack(line);
        KeepRun(kRunBytes);
      }
    }
    if (position_ == first_row) return std::optional<Batch>();
    HDPS_ASSIGN_OR_RETURN(std::optional<Batch> batch, lanes_->Parse(*rows_, first_row));
    if (batch.has_value()) {
      for (const CachedRun& run : lanes_->runs()) Keep(run);
      KeepRun(0);
      return batch;
    }
    BatchBuilder builder = rows_->NewBatch(lanes_->size());
    for (size_t i = 0; i < lanes_->size(); ++i) {
      const RowPlace place{epoch_, lanes_->position(i), static_cast<uint32_t>(i)};
      HDPS_RETURN_IF_ERROR(rows_->Add(lanes_->line(i), place, &builder));
    }
    KeepRun(0);
    return std::optional<Batch>(builder.Finish(first_row));
  }
  // Packed rows wait for so many bytes of them.
  static constexpr size_t kRunBytes = size_t{128} << 10;
  // Gives the packed rows that wait to the writer if they have as many bytes.
  void KeepRun(size_t bytes_min) {
    if (run_.bytes() < std::max<size_t>(1, bytes_min)) return;
    Keep(run_);
    run_.Clear();
  }
  void Keep(const CachedRun& run) {
    if (writer_ == nullptr) return;
    writer_->Add(run);
    if (!writer_->status().ok()) KeepRows(nullptr);
  }
  // Returns the next line of the step that begins at `first_row`: of the epoch's stream or, behind
  // its end, one that fills the step up. False: the step is complete.
  Result<bool> NextOfStep(uint64_t first_row, Line* line) {
    HDPS_ASSIGN_OR_RETURN(const bool found, NextLine(line));
    ended_ = !found;
    return found || (position_ > first_row && FirstLine(line));
  }
  // Returns the next line of the epoch's stream, valid until the next call.
  Result<bool> NextLine(Line* line) {
    HDPS_ASSIGN_OR_RETURN(const bool found, NextShuffled(line));
    if (found && options_.fill_last && position_ < options_.batch_size) {
      first_lines_.push_back({std::string(line->text), line->place, line->row});
    }
    return found;
  }

  // Returns the next line with which the last step is filled up: those of the first step, one after
  // the other. False: the step stays short.
  bool FirstLine(Line* line) {
    if (first_lines_.empty()) return false;
    const KeptLine& kept = first_lines_[filled_++ % first_lines_.size()];
    *line = {kept.text, kept.place, kept.row};
    return true;
  }

  Result<bool> NextInOrder(Line* line) {
    HDPS_ASSIGN_OR_RETURN(const bool found, lines_.Next(line));
    KnowPaths();
    return found;
  }
  // Tells the parser the files of a followed log, for its messages.
  void KnowPaths() {
    if (options_.follow != nullptr) rows_->KnowPaths(lines_.paths());
  }

  Result<bool> NextShuffled(Line* line) {
    if (window_rows_ == 0) return NextInOrder(line);
    while (!lines_ended_ && !window_.full()) {
      HDPS_ASSIGN_OR_RETURN(const bool found, NextInOrder(line));
      lines_ended_ = !found;
      if (!found) break;
      // Lines of a table come out in the same order, held or not.
      const bool holds = window_.held_bytes() < options_.window_bytes;
      window_.Add({holds ? rows_->Hold(line->text) : line->text, line->place, line->row});
    }
    if (window_.empty()) return false;
    *line = window_.RemoveAny();
    return true;
  }

  const ReaderOptions options_;
  const uint64_t window_rows_;
  const std::unique_ptr<RowAdder> rows_;
  const std::unique_ptr<RowLanes> lanes_;  // Null: rows are parsed as their lines come.
  LineReader lines_;
  ShuffleWindow window_;
  bool lines_ended_ = true;
  bool ended_ = true;  // True before the first StartEpoch, too.
  uint32_t epoch_ = 0;
  uint64_t position_ = 0;
  struct KeptLine {
    std::string text;
    LinePlace place;
    uint64_t row;
  };
  std::vector<KeptLine> first_lines_;  // Lines of the first step, if the last one is filled up.
  RowWriter* writer_ = nullptr;        // Null: rows are not kept.
  CachedRun run_;                      // Rows on their way to it.
  uint64_t filled_ = 0;                // Number of lines added to the last step.
};

// Threads that wait for each other cost more than the rows of small batches.
constexpr uint32_t kLaneBatchMin = 1024;

bool ParsesInLanes(const ReaderOptions& options) {
  const bool plain = options.items == nullptr && options.bad_rows == BadRows::kCounted &&
                     options.LabelsWanted()[0].num_classes != kLabelsNotRead;
  return plain && options.executor != nullptr && options.executor->threads() >= kLaneThreadsMin &&
         options.RowsOfStep() >= kLaneBatchMin;
}

Status CheckFiles(FileSystem& files, const DataSpec& data, const std::vector<std::string>& paths) {
  if (paths.empty()) {
    return {Code::kInvalidArgument,
            "no data file: expected one or more in data.train or data.eval"};
  }
  HDPS_RETURN_IF_ERROR(CheckTable(data, paths));
  if (TableOf(data, paths) != nullptr) return {};
  for (const std::string& path : paths) {
    if (files.Exists(path)) continue;
    if (NamesTopic(path)) {
      return {Code::kInvalidArgument,
              "'" + path +
                  "' is a topic of Kafka, which only the training of a job reads; expected a file"};
    }
    return {Code::kInvalidArgument,
            "data file '" + path + "' does not exist: " +
                (NamesTable(path) ? kWhyNoTable
                                  : "expected a file (a relative path is "
                                    "taken from the folder of the job file)")};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<BatchReader>> NewBatchReader(FileSystem& files, const DataSpec& data,
                                                    const std::vector<std::string>& paths,
                                                    const ReaderOptions& options) {
  CHECK_GT(options.batch_size, 0u);
  CHECK_LT(options.part, options.num_parts);
  CHECK(data.vocabulary.file.empty() || data.vocabulary.values != nullptr)
      << "LoadVocabulary() comes before rows are read";
  if (options.topic != nullptr) return NewTopicReader(files, data, paths, options);
  if (options.follow == nullptr) HDPS_RETURN_IF_ERROR(CheckFiles(files, data, paths));
  if (data.format == DataFormat::kCsv && data.delimiter.size() != 1) {
    return Status(Code::kInvalidArgument,
                  "data.delimiter '" + data.delimiter + "': expected one character");
  }
  const RowLanes::MakeAdder make = [=] {
    return RowAdder::Make(data, paths, options.LabelsWanted(), options.items, options.bad_rows);
  };
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<RowAdder> rows, make());
  std::unique_ptr<RowLanes> lanes;
  if (ParsesInLanes(options)) lanes = std::make_unique<RowLanes>(make, *options.executor);
  auto stream = std::make_unique<StreamReader>(files, data, paths, options, std::move(rows),
                                               std::move(lanes));
  KeepRows keep = [of = stream.get()](RowWriter* writer) { of->KeepRows(writer); };
  std::unique_ptr<BatchReader> reader = std::move(stream);
  // A table needs neither an index nor a cache, and a followed log is read once.
  if (TableOf(data, paths) != nullptr || options.follow != nullptr) return reader;
  const ReaderInput input{files, data, paths, options};
  if (options.shuffle && data.shuffle_rows > 0 && options.num_parts >= kPartsMany) {
    HDPS_ASSIGN_OR_RETURN(rows, make());
    reader = NewIndexedReader(input, std::move(rows), std::move(reader));
    keep = nullptr;
  }
  if (!ReadsFromCache(options)) return reader;
  HDPS_ASSIGN_OR_RETURN(rows, make());
  return NewCachedReader(input, std::move(rows), std::move(reader), std::move(keep));
}

Result<uint64_t> CountRows(FileSystem& files, const DataSpec& data,
                           const std::vector<std::string>& paths, const ReaderOptions& options) {
  HDPS_RETURN_IF_ERROR(CheckFiles(files, data, paths));
  LineReader lines(files, paths, RulesOf(data, paths, options));
  HDPS_RETURN_IF_ERROR(lines.Start());
  uint64_t rows = 0;
  for (Line line;; ++rows) {
    HDPS_ASSIGN_OR_RETURN(const bool found, lines.Next(&line));
    if (!found) return rows;
  }
}

}  // namespace hdps
