// Parses a record by way of a line of cells.
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/formats/parsers.h"
#include "worker/data/records/record_cells.h"

namespace hdps {
namespace {

class RecordParser : public RowParser {
 public:
  RecordParser(std::unique_ptr<RecordCells> cells, std::unique_ptr<RowParser> of_line)
      : cells_(std::move(cells)), of_line_(std::move(of_line)) {}

  std::optional<RowError> Parse(std::string_view record, Row* row) override {
    line_.Clear();
    if (auto error = cells_->Write(record, &line_)) return error;
    return of_line_->Parse({line_.data(), line_.size()}, row);
  }

  std::vector<NamedText> Values(std::string_view record) override {
    line_.Clear();
    if (cells_->Write(record, &line_)) return {};
    return of_line_->Values({line_.data(), line_.size()});
  }

 private:
  const std::unique_ptr<RecordCells> cells_;
  const std::unique_ptr<RowParser> of_line_;
  CellLineWriter line_;  // Of the current record.
};

}  // namespace

std::unique_ptr<RecordCells> NewRecordCells(const DataSpec& data, bool labels_read) {
  if (data.format == DataFormat::kTfrecord) return NewExampleCells(data, labels_read);
  if (data.format == DataFormat::kJsonl) return NewJsonCells(data, labels_read);
  return nullptr;
}

std::unique_ptr<RowParser> NewRecordParser(const DataSpec& data,
                                           const std::vector<LabelSpec>& labels) {
  const bool labels_read = labels[0].num_classes != kLabelsNotRead;
  return std::make_unique<RecordParser>(NewRecordCells(data, labels_read),
                                        NewCellLineParser(data, labels));
}

}  // namespace hdps
