// The stream of an epoch: lines, mixed, split by worker, parsed, put into batches.
#include "worker/data/batch_reader.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "worker/data/derived_features.h"
#include "worker/data/line_reader.h"
#include "worker/data/parsers.h"
#include "worker/data/shuffle_window.h"

namespace hdps {
namespace {

constexpr size_t kWindowBytesMax = size_t{1} << 30;
constexpr uint64_t kBadRowsLogged = 10;
// Keeps the shuffle apart from the other things that the job's seed decides.
constexpr uint64_t kShuffleSalt = 0x73687566666c6531;

// Everything between a line and a row of a batch.
struct Parsing {
  std::unique_ptr<RowParser> parser;
  std::unique_ptr<DerivedFeatures> derived;
  NumericTransforms transforms;
  std::vector<std::string> numeric_names;
  size_t num_sparse = 0;
};

class StreamReader : public BatchReader {
 public:
  StreamReader(FileSystem& files, const DataSpec& data, const std::vector<std::string>& paths,
               const ReaderOptions& options, Parsing parsing)
      : options_(options),
        window_rows_(options.shuffle ? data.shuffle_rows : 0),
        max_bad_rows_(static_cast<uint64_t>(std::max<int64_t>(0, data.max_bad_rows))),
        parsing_(std::move(parsing)),
        lines_(files, paths, {.header = data.header, .comment = data.comment}),
        window_(window_rows_, kWindowBytesMax) {}

  Status StartEpoch(uint32_t epoch, uint64_t skip_steps) override {
    HDPS_RETURN_IF_ERROR(lines_.Start());
    window_.Restart(RandomAt(options_.seed ^ kShuffleSalt, epoch));
    lines_ended_ = ended_ = false;
    position_ = bad_rows_ = 0;
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
    BatchBuilder builder(parsing_.transforms.size(), parsing_.num_sparse,
                         options_.batch_size / options_.num_parts + 1);
    for (Line line; position_ - first_row < options_.batch_size; ++position_) {
      HDPS_ASSIGN_OR_RETURN(const bool found, NextLine(&line));
      if (!found) {
        ended_ = true;
        break;
      }
      if (position_ % options_.num_parts != options_.part) continue;
      HDPS_RETURN_IF_ERROR(AddLine(line, &builder));
    }
    if (position_ == first_row) return std::optional<Batch>();
    return std::optional<Batch>(builder.Take(first_row));
  }

  uint64_t bad_rows() const override { return bad_rows_; }
  uint64_t bytes_read() const override { return lines_.bytes_read(); }
  double progress() const override { return lines_.progress(); }

 private:
  // The next line of the epoch's stream, valid until the next call.
  Result<bool> NextLine(Line* line) {
    if (window_rows_ == 0) return lines_.Next(line);
    while (!lines_ended_ && !window_.full()) {
      HDPS_ASSIGN_OR_RETURN(const bool found, lines_.Next(line));
      lines_ended_ = !found;
      if (found) window_.Put(*line);
    }
    if (window_.empty()) return false;
    *line = window_.TakeAny();
    return true;
  }

  Status AddLine(const Line& line, BatchBuilder* builder) {
    std::optional<RowError> error = parsing_.parser->Parse(line.text, &row_);
    if (!error) error = parsing_.derived->Append(&row_);
    if (!error && !parsing_.transforms.Apply(row_.numbers, &numeric_)) error = DoesNotFit();
    if (!error) {
      builder->Add(row_, numeric_);
      return {};
    }
    ++bad_rows_;
    const std::string what =
        DescribeRowError(lines_.path(line.place.file), line.place.number, line.text, *error);
    if (bad_rows_ > max_bad_rows_) {
      return {Code::kInvalidArgument, what + " (bad rows: " + std::to_string(bad_rows_) +
                                          ", data.max_bad_rows: " + std::to_string(max_bad_rows_) +
                                          "; set it higher to pass over them)"};
    }
    if (bad_rows_ <= kBadRowsLogged) LOG(WARNING) << "bad row passed over: " << what;
    if (bad_rows_ == kBadRowsLogged) LOG(WARNING) << "further bad rows are counted, not shown";
    return {};
  }

  RowError DoesNotFit() const {
    const auto huge = std::find_if(numeric_.begin(), numeric_.end(),
                                   [](float value) { return !std::isfinite(value); });
    const auto column = static_cast<size_t>(huge - numeric_.begin());
    return {{}, parsing_.numeric_names[column], "a number within the range of a 32-bit float"};
  }

  const ReaderOptions options_;
  const uint64_t window_rows_;
  const uint64_t max_bad_rows_;

  Parsing parsing_;
  LineReader lines_;
  ShuffleWindow window_;
  bool lines_ended_ = true;
  bool ended_ = true;  // Also before the first StartEpoch.
  uint64_t position_ = 0;
  uint64_t bad_rows_ = 0;
  Row row_;
  std::vector<float> numeric_;
};

std::vector<NumericTransforms::Column> TransformsOf(const DataSpec& data, size_t num_numeric) {
  std::vector<NumericTransforms::Column> columns;
  if (data.format == DataFormat::kCsv) {
    for (const ColumnSpec& spec : data.columns) {
      if (spec.type == ColumnType::kNumeric) {
        columns.push_back({spec.transform, spec.mean, spec.scale});
      }
    }
    return columns;
  }
  columns.assign(num_numeric, {data.numeric_transform, 0, 1});
  return columns;
}

Result<Parsing> MakeParsing(const DataSpec& data, uint32_t num_classes) {
  const FeatureNames names = FeaturesOf(data);
  std::vector<std::string> base = names.sparse;
  base.resize(base.size() - std::min(base.size(), data.features.size()));
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<DerivedFeatures> derived,
                        DerivedFeatures::Make(data.features, names.numeric, base));
  Parsing parsing{.parser = nullptr,
                  .derived = std::move(derived),
                  .transforms = NumericTransforms(TransformsOf(data, names.numeric.size())),
                  .numeric_names = names.numeric,
                  .num_sparse = names.sparse.size()};
  switch (data.format) {
    case DataFormat::kCsv:
      parsing.parser = NewCsvParser(data, num_classes);
      break;
    case DataFormat::kCriteo:
      parsing.parser = NewCriteoParser(data, num_classes);
      break;
    case DataFormat::kLibsvm:
      parsing.parser = NewLibsvmParser(data, num_classes);
      break;
    case DataFormat::kLibffm:
      parsing.parser = NewLibffmParser(data, num_classes);
      break;
  }
  return parsing;
}

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
  CHECK(options.num_classes == kLabelsNotRead || options.num_classes >= 2u);
  HDPS_RETURN_IF_ERROR(CheckFiles(files, paths));
  if (data.format == DataFormat::kCsv && data.delimiter.size() != 1) {
    return Status(Code::kInvalidArgument,
                  "data.delimiter '" + data.delimiter + "': expected one character");
  }
  HDPS_ASSIGN_OR_RETURN(Parsing parsing, MakeParsing(data, options.num_classes));
  std::unique_ptr<BatchReader> reader =
      std::make_unique<StreamReader>(files, data, paths, options, std::move(parsing));
  return reader;
}

}  // namespace hdps
