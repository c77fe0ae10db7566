// Parses the lines of records by the columns of the job.
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "worker/data/formats/cell_rules.h"
#include "worker/data/formats/parsers.h"
#include "worker/data/records/cell_line.h"
#include "worker/data/records/packed_order.h"
#include "worker/data/records/record_columns.h"

namespace hdps {
namespace {

class CellLineParser : public RowParser {
 public:
  CellLineParser(const DataSpec& data, const std::vector<LabelSpec>& labels)
      : cells_of_(RecordColumns(data)),
        cells_(cells_of_.size()),
        order_(data, cells_of_),
        rules_(data, labels, '.') {
    for (const CellColumn& column : rules_.columns()) {
      if (column.spec.type == ColumnType::kSkip) continue;
      const bool one_key =
          column.spec.type == ColumnType::kCategorical && column.spec.vocab_size == 0;
      const size_t cell = CellPlace(cells_of_, column.spec.cell());
      sources_.push_back({&column, cell, one_key, order_.places()[cell]});
    }
  }

  std::optional<RowError> Parse(std::string_view line, Row* row) override {
    const std::string_view whole = line;
    const bool packed =
        line.size() >= order_.bytes() && line[0] == static_cast<char>(CellTag::kPacked);
    if (packed) line.remove_prefix(order_.bytes());
    for (size_t c = 0; c < cells_.size(); ++c) {
      if (packed && order_.places()[c].form != PackedOrder::Form::kCell) continue;
      const std::optional<CellValue> taken = TakeCell(&line);
      if (!taken) return RowError{{}, {}, "a cell for each column"};
      cells_[c] = *taken;
    }
    if (!line.empty()) return RowError{{}, {}, "no more cells than columns"};
    rules_.Begin(row);
    for (const Source& source : sources_) {
      if (packed && source.place.form != PackedOrder::Form::kCell) {
        if (auto error = AddPacked(source, whole.data() + source.place.offset, row)) return error;
      } else if (auto error = AddCell(source, cells_[source.cell], row)) {
        return error;
      }
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
    PackedOrder::Place place;
  };

  // Adds a key or a number of a packed line.
  std::optional<RowError> AddPacked(const Source& source, const char* bytes, Row* row) {
    if (source.place.form == PackedOrder::Form::kKey) {
      Key key;
      std::memcpy(&key, bytes, sizeof(key));
      row->AddFeature(key);
      return std::nullopt;
    }
    double number;
    std::memcpy(&number, bytes, sizeof(number));
    if (std::isinf(number)) {
      return RowError{TextOfFloat(number, &text_), source.column->spec.name, "a number"};
    }
    row->numbers.push_back(number);
    return std::nullopt;
  }

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
  std::vector<CellValue> cells_;  // Of the current line, those that are not packed.
  const PackedOrder order_;
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
