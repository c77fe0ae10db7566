// Reads the first rows of each file with the job's parser, and draws conclusions about the whole.
#include "worker/data/data_preview.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "common/base/show_number.h"
#include "common/job/data_paths.h"
#include "common/job/eval_sets.h"
#include "common/job/job_spec.h"
#include "common/job/kafka/kafka_entry.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/batch_reader.h"
#include "worker/data/columnar/table_files.h"
#include "worker/data/data_description.h"
#include "worker/data/formats/row_adder.h"
#include "worker/data/header_check.h"
#include "worker/data/held_out/share_look.h"
#include "worker/data/indexed_reader.h"
#include "worker/data/line_reader.h"
#include "worker/data/records/record_columns.h"

namespace hdps {
namespace {

constexpr size_t kExampleBytesMax = 240;
constexpr size_t kClassesShownMax = 10;
constexpr size_t kNamesShownMax = 10;
constexpr size_t kLabelTextsMax = 1000;

class Preview {
 public:
  Preview(FileSystem& files, const DataSpec& data, const std::vector<std::string>& paths,
          const std::vector<LabelSpec>& labels, std::unique_ptr<RowAdder> rows)
      : files_(files),
        data_(data),
        paths_(paths),
        labels_(labels),
        num_classes_(labels[0].num_classes),
        table_(TableOf(data, paths)),
        records_(FileRulesOf(data, paths, num_classes_ != kLabelsNotRead).records),
        rows_(std::move(rows)),
        batch_(rows_->NewBatch(kPreviewRows)),
        column_names_(ColumnNames(data)) {}

  Result<DataPreview> Run() {
    result_.lines.push_back(table_ == nullptr ? DescribeFormat(data_, paths_.size())
                                              : DescribeTable(data_, table_->num_rows()));
    const bool lines = table_ == nullptr && records_ == nullptr;
    if (has_columns() && data_.header && lines) HDPS_RETURN_IF_ERROR(LookAtHeaders());
    for (uint32_t file = 0; file < std::min(paths_.size(), kPreviewFiles); ++file) {
      HDPS_ASSIGN_OR_RETURN(const uint64_t bytes, DataBytes(files_, data_, paths_[file]));
      if (bytes > 0) HDPS_RETURN_IF_ERROR(LookAtFile(file));
    }
    const Batch batch = batch_.Finish(0);
    result_.rows = batch.num_examples;
    if (num_bad_ > 0) {
      result_.warnings.push_back(Counted(num_bad_, "row") + " of the first " +
                                 Whole(num_bad_ + result_.rows) +
                                 " cannot be read; the first: " + first_bad_);
    }
    if (result_.rows > 0) {
      DescribeExample(batch);
      DescribeLabelsAndKeys(batch);
      WarnOfLabels();
      WarnOfNames();
    }
    return std::move(result_);
  }

 private:
  std::string PlaceOf(const Line& line) const {
    const std::string& path = paths_[line.place.file];
    if (table_ != nullptr) return TableRowPlace(path, line.place.number - 1);
    return path + ":" + std::to_string(line.place.number);
  }
  bool has_columns() const { return !column_names_.empty(); }
  bool labels_read() const { return num_classes_ != kLabelsNotRead; }

  // The header or the table gives the names of the cells.
  bool by_name() const {
    return table_ != nullptr || HasTypedCells(data_.format) ||
           (data_.format == DataFormat::kCsv && data_.header);
  }

  bool IsLabel(const std::string& name) const {
    const auto column = std::ranges::find(data_.columns, name, &ColumnSpec::name);
    return column != data_.columns.end() && column->type == ColumnType::kLabel;
  }

  // Returns the cells of a line with the names of the job's columns; a file to predict may lack the
  // label's.
  std::vector<NamedText> CellsOf(const Line& line) const {
    std::vector<NamedText> cells = rows_->Values(line);
    if (by_name()) return cells;
    const bool labels_lack =
        !labels_read() && cells.size() + labels_.size() == column_names_.size();
    size_t column = 0;
    for (NamedText& cell : cells) {
      while (labels_lack && column < column_names_.size() && IsLabel(column_names_[column])) {
        ++column;
      }
      cell.name = column < column_names_.size() ? column_names_[column] : "";
      ++column;
    }
    return cells;
  }

  Status LookAtFile(uint32_t file) {
    LineRules rules = FileRulesOf(data_, {paths_[file]}, labels_read());
    rules.records = records_;
    rules.whole_lines = data_.follow;
    LineReader lines(files_, {paths_[file]}, rules);
    HDPS_RETURN_IF_ERROR(lines.Start());
    const uint64_t rows_max = example_place_.empty() ? kPreviewRows : 1;
    Line line;
    for (uint64_t row = 0; row < rows_max; ++row) {
      HDPS_ASSIGN_OR_RETURN(const bool found, lines.Next(&line));
      if (!found) break;
      line.place.file = file;
      const std::vector<NamedText> cells = row == 0 && has_columns() && !data_.header && !by_name()
                                               ? CellsOf(line)
                                               : std::vector<NamedText>();
      if (NamesItsColumns(cells, column_names_)) {
        return {Code::kInvalidArgument,
                PlaceOf(line) + ": this line is a header, with the names of the job's columns: " +
                    "expected data.header to be true"};
      }
      std::optional<std::string> bad = rows_->AddOrDescribe(line, &batch_);
      if (!bad) {
        NoteGood(line);
        continue;
      }
      // There are as many cells as columns, but text where the next row has numbers.
      if (!cells.empty() && cells.size() == column_names_.size() && SecondRowIsGood(file)) {
        *bad += "; the next row is good, so if this line is a header, set data.header to true";
      }
      HDPS_RETURN_IF_ERROR(NoteBad(*bad));
    }
    return {};
  }

  // Checks all headers, not only those of the first files, because each may have its own order.
  Status LookAtHeaders() {
    for (uint32_t file = 0; file < paths_.size(); ++file) {
      HDPS_ASSIGN_OR_RETURN(const uint64_t bytes, files_.FileSize(paths_[file]));
      if (bytes > 0) HDPS_RETURN_IF_ERROR(LookAtHeader(file));
    }
    for (const auto& [names, files] : passed_over_) {
      result_.warnings.push_back(
          files.front() + ": columns of the header that the job does not name are passed over: " +
          names + (files.size() > 1 ? "; so in " + Counted(files.size() - 1, "more file") : ""));
    }
    return {};
  }

  Status LookAtHeader(uint32_t file) {
    LineRules rules;
    rules.whole_lines = data_.follow;
    LineReader lines(files_, {paths_[file]}, rules);
    HDPS_RETURN_IF_ERROR(lines.Start());
    Line line;
    HDPS_ASSIGN_OR_RETURN(const bool found, lines.Next(&line));
    line.place.file = file;
    if (!found && data_.follow) return {};
    if (!found || line.place.number != 1) {
      if (!by_name()) return {};
      return {Code::kInvalidArgument,
              paths_[file] +
                  ":1: the first line is blank: expected the names of the columns, for "
                  "data.header is true"};
    }
    // Numbers in place of names: this is a row that would not be read. Text alone could be either.
    const ColumnSpec* label = LabelColumn(data_);
    const bool has_numbers = !FeaturesOf(data_).numeric.empty() ||
                             (labels_read() && (label == nullptr || label->positive.empty()));
    BatchBuilder unused = rows_->NewBatch(1);
    if (by_name()) {
      std::vector<std::string> names;
      const Status matched = rows_->TakeHeader(file, line.text, &names);
      if (!matched.ok() && has_numbers && !rows_->AddOrDescribe(line, &unused)) {
        return {Code::kInvalidArgument,
                PlaceOf(line) +
                    ": data.header is true, but this line reads like a row: expected "
                    "the names of the columns, or data.header to be false"};
      }
      if (!names.empty()) passed_over_[ListOf(names)].push_back(PlaceOf(line));
      return matched;
    }
    if (has_numbers && !rows_->AddOrDescribe(line, &unused)) {
      result_.warnings.push_back(PlaceOf(line) +
                                 ": data.header is true, but this line reads like a row; it is "
                                 "passed over");
      return {};
    }
    return CompareHeader(PlaceOf(line), CellsOf(line), &result_.warnings);
  }

  static std::string ListOf(const std::vector<std::string>& names) {
    std::string list;
    for (size_t i = 0; i < names.size() && i < kNamesShownMax; ++i) {
      list += (i == 0 ? "'" : ", '") + Printable(names[i]) + "'";
    }
    if (names.size() > kNamesShownMax)
      list += " and " + Whole(names.size() - kNamesShownMax) + " more";
    return list;
  }

  bool SecondRowIsGood(uint32_t file) {
    LineReader lines(files_, {paths_[file]}, {.comment = data_.comment});
    if (!lines.Start().ok()) return false;
    Line line;
    for (int row = 0; row < 2; ++row) {
      const Result<bool> found = lines.Next(&line);
      if (!found.ok() || !*found) return false;
    }
    line.place.file = file;
    BatchBuilder unused = rows_->NewBatch(1);
    return !rows_->AddOrDescribe(line, &unused).has_value();
  }

  Status NoteBad(const std::string& bad) {
    if (data_.max_bad_rows == 0) {
      return {Code::kInvalidArgument,
              bad + " (data.max_bad_rows is 0; set it higher to pass over bad rows)"};
    }
    if (num_bad_++ == 0) first_bad_ = bad;
    return {};
  }

  void NoteGood(const Line& line) {
    const std::vector<NamedText> values = has_columns() ? CellsOf(line) : rows_->Values(line);
    const ColumnSpec* label = LabelColumn(data_);
    const std::string label_name = label == nullptr ? "label" : label->name;
    for (const NamedText& value : values) {
      if (!value.text.empty()) with_values_.insert(value.name);
      if (value.name == label_name && label_texts_.size() < kLabelTextsMax) {
        ++label_texts_[value.text];
      }
    }
    if (!example_place_.empty()) return;
    example_place_ = PlaceOf(line);
    for (const NamedText& value : values) {
      const auto column = std::ranges::find(data_.columns, value.name, &ColumnSpec::name);
      const bool skipped = HasNamedColumns(data_.format) && column != data_.columns.end() &&
                           column->type == ColumnType::kSkip;
      if (!skipped && !(by_name() && value.name.empty())) example_.push_back(value);
    }
  }

  void DescribeExample(const Batch& batch) {
    std::string text = "first row, " + example_place_ + ": ";
    if (labels_read()) text += "label " + ShowNumber("%g", batch.labels[0]) + " from ";
    for (size_t i = 0; i < example_.size(); ++i) {
      if (text.size() > kExampleBytesMax) {
        text += ", and " + Whole(example_.size() - i) + " more";
        break;
      }
      const NamedText& value = example_[i];
      text += (i == 0 ? "" : ", ") + value.name + "=" + Printable(value.text);
    }
    result_.lines.push_back(text);
  }

  void DescribeLabelsAndKeys(const Batch& batch) {
    std::string text = "first " + Counted(result_.rows, "row") + ": ";
    if (num_classes_ == kLabelsAnyNumber) {
      const auto [least, most] = std::ranges::minmax(FirstLabels(batch));
      text += "labels from " + ShowNumber("%g", least) + " to " + ShowNumber("%g", most) + "; ";
    } else if (labels_read()) {
      result_.labels.resize(num_classes_);
      for (const float label : FirstLabels(batch)) ++result_.labels[static_cast<size_t>(label)];
      size_t seen = 0;
      for (uint32_t c = 0; c < num_classes_; ++c) {
        if (result_.labels[c] == 0 || ++seen > kClassesShownMax) continue;
        text += (seen == 1 ? "label " : ", label ") + std::to_string(c) + " in " +
                Whole(result_.labels[c]);
      }
      if (seen > kClassesShownMax) text += ", " + Whole(seen - kClassesShownMax) + " more classes";
      text += "; ";
    }
    result_.lines.push_back(text + DescribeKeys(batch, FeaturesOf(data_).sparse));
  }

  // Returns the labels of the first task.
  std::vector<float> FirstLabels(const Batch& batch) const {
    std::vector<float> labels;
    for (size_t i = 0; i < batch.labels.size(); i += labels_.size()) {
      labels.push_back(batch.labels[i]);
    }
    return labels;
  }

  void WarnOfLabels() {
    if (num_classes_ != 2) return;
    const ColumnSpec* label = LabelColumn(data_);
    const bool by_text = label != nullptr && !label->positive.empty();
    if (by_text && result_.labels[1] == 0 && label_texts_.size() > 1) {
      result_.warnings.push_back(
          paths_[0] + ": no label in the first " + Counted(result_.rows, "row") + " is '" +
          label->positive[0] +
          (label->positive.size() > 1 ? "' or another text of positive" : "'") +
          ", so all count as 0; the labels are " + DescribeCounts(label_texts_));
    }
    if (!by_text && label_texts_.contains("-1") && label_texts_.contains("0")) {
      result_.warnings.push_back(paths_[0] + ": labels are both -1 and 0, and both count as 0: " +
                                 DescribeCounts(label_texts_));
    }
  }

  // Where each row has its own names, a wrong one in the job looks like a cell that is missing.
  void WarnOfNames() {
    if (data_.format != DataFormat::kTfrecord && data_.format != DataFormat::kJsonl) return;
    for (const ColumnSpec& column : RecordColumns(data_)) {
      if (with_values_.contains(column.name)) continue;
      if (!labels_read() && MayBeAbsent(column.type)) continue;
      result_.warnings.push_back(paths_[0] + ": column '" + column.name +
                                 "' has no value in the first " + Counted(result_.rows, "row") +
                                 ": expected a name that rows have, unless it comes seldom");
    }
  }

  FileSystem& files_;
  const DataSpec& data_;
  const std::vector<std::string>& paths_;
  const std::vector<LabelSpec> labels_;
  const uint32_t num_classes_;                      // Classes of the first label.
  const std::shared_ptr<const ColumnTable> table_;  // Null: the rows are those of files.
  const std::shared_ptr<RecordFiles> records_;      // Compares the types of all files.
  const std::unique_ptr<RowAdder> rows_;
  BatchBuilder batch_;
  const std::vector<std::string> column_names_;

  DataPreview result_;
  std::string example_place_;
  std::vector<NamedText> example_;
  std::map<std::string, uint64_t> label_texts_;
  std::set<std::string> with_values_;  // Columns that had a value.
  // Maps a list of names to the places of the headers that have them.
  std::map<std::string, std::vector<std::string>> passed_over_;
  uint64_t num_bad_ = 0;
  std::string first_bad_;
};

}  // namespace

Result<DataPreview> PreviewData(FileSystem& files, const DataSpec& data,
                                const std::vector<std::string>& paths,
                                const std::vector<LabelSpec>& labels) {
  // Refuses missing files.
  HDPS_RETURN_IF_ERROR(NewBatchReader(files, data, paths, {.labels = labels}).status());
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<RowAdder> rows, RowAdder::Make(data, paths, labels));
  return Preview(files, data, paths, labels, std::move(rows)).Run();
}

Result<DataPreview> PreviewJobData(FileSystem& files, const Job& job) {
  HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> paths, TrainingFiles(files, job.data));
  DataPreview preview;
  if (ReadsTopic(job.data)) {
    preview.lines.push_back(job.data.train[0] + " is a topic, which is not looked at before");
  } else if (job.data.follow && paths.empty()) {
    preview.lines.push_back(job.data.train[0] + " has no file yet; the job waits for the first");
  } else {
    HDPS_ASSIGN_OR_RETURN(preview, PreviewData(files, job.data, paths, LabelsOf(job)));
  }
  for (const EvalSet& set : EvalSetsOf(job.data)) {
    if (set.held_out) continue;  // Its files are the training files.
    HDPS_ASSIGN_OR_RETURN(const DataPreview eval,
                          PreviewData(files, job.data, set.files, LabelsOf(job)));
    preview.warnings.insert(preview.warnings.end(), eval.warnings.begin(), eval.warnings.end());
  }
  if (job.data.validation_share > 0) {
    HDPS_ASSIGN_OR_RETURN(const ShareLook look, LookAtShare(files, job));
    std::ranges::move(WhyNotShare(look, job.data.validation_share),
                      std::back_inserter(preview.warnings));
  }
  return preview;
}

}  // namespace hdps
