// Parses the lines of records by the columns of the job.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "worker/data/formats/cell_rules.h"
#include "worker/data/formats/parsers.h"
#include "worker/data/records/cell_line.h"
#include "worker/data/records/record_columns.h"

namespace hdps {
namespace {

class CellLineParser : public RowParser {
 public:
  CellLineParser(const DataSpec& data, const std::vector<LabelSpec>& labels)
      : cells_of_(RecordColumns(data)), cells_(cells_of_.size()), rules_(data, labels, '.') {
    for (const CellColumn& column : rules_.columns()) {
      if (column.spec.type == ColumnType::kSkip) continue;
      const bool one_key =
          column.spec.type == ColumnType::kCategorical && column.spec.vocab_size == 0;
      sources_.push_back({&column, CellPlace(cells_of_, column.spec.cell()), one_key});
    }
  }

  std::optional<RowError> Parse(std::string_view line, Row* row) override {
    for (CellValue& cell : cells_) {
      const std::optional<CellValue> taken = TakeCell(&line);
      if (!taken) return RowError{{}, {}, "a cell for each column"};
      cell = *taken;
    }
    if (!line.empty()) return RowError{{}, {}, "no more cells than columns"};
    rules_.Begin(row);
    for (const Source& source : sources_) {
      if (auto error = AddCell(source, cells_[source.cell], row)) return error;
    }
    return std::nullopt;
  }

  std::vector<NamedText> Values(std::string_view line) override {
    std::vector<NamedText> values;
    for (const ColumnSpec& column : cells_of_) {
      const std::optional<CellValue> cell = TakeCell(&line);
      if (!cell) break;
      NamedText& value = values.emplace_back();
      value.name = column.name;
      ForEachValue(*cell, [&](std::string_view text) {
        if (!value.text.empty()) value.text += column.separator;
        value.text += text;
      });
    }
    return values;
  }

 private:
  struct Source {
    const CellColumn* column;
    size_t cell;   // Its place in a line.
    bool one_key;  // The cell is the text of one key.
  };

  std::optional<RowError> AddCell(const Source& source, const CellValue& cell, Row* row) {
    const CellColumn& column = *source.column;
    if (column.spec.type == ColumnType::kNumeric && cell.is_number()) {
      return rules_.AddNumber(
          column, cell.Number(), [&] { return cell.Text(&text_); }, row);
    }
    if (cell.tag == CellTag::kList) return AddList(column, cell.text, row);
    const std::string_view text = TrimmedCell(cell.Text(&text_));
    if (!source.one_key) return rules_.AddCell(column, text, row);
    rules_.AddKey(column, text, row);
    return std::nullopt;
  }

  std::optional<RowError> AddList(const CellColumn& column, std::string_view values, Row* row) {
    if (column.spec.type != ColumnType::kMulti) {
      return RowError{{}, column.spec.name, "one value, not a list,"};
    }
    bool damaged = false;
    const auto next = [&](std::string_view* text) {
      if (values.empty()) return false;
      const std::optional<CellValue> value = TakeCell(&values);
      damaged = !value || value->tag == CellTag::kList;
      if (!damaged) *text = TrimmedCell(value->Text(&text_));
      return !damaged;
    };
    if (auto error = CellRules::AddList(column, next, row)) return error;
    if (damaged) return RowError{{}, column.spec.name, "a list of values"};
    return std::nullopt;
  }

  const std::vector<ColumnSpec> cells_of_;
  std::vector<CellValue> cells_;  // Of the current line.
  CellRules rules_;
  std::vector<Source> sources_;
  CellText text_;  // Of the current cell.
};

}  // namespace

std::unique_ptr<RowParser> NewCellLineParser(const DataSpec& data,
                                             const std::vector<LabelSpec>& labels) {
  return std::make_unique<CellLineParser>(data, labels);
}

}  // namespace hdps
