// Parses the rows of a table by the columns of the job.
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/columnar/cell_reader.h"
#include "worker/data/columnar/column_sources.h"
#include "worker/data/columnar/table_files.h"
#include "worker/data/formats/cell_rules.h"
#include "worker/data/formats/derived_features.h"
#include "worker/data/formats/parsers.h"
#include "worker/data/header_check.h"
#include "worker/data/number.h"

namespace hdps {
namespace {

// The cells of one of the job's columns.
struct Source {
  const CellColumn* column;
  size_t index;  // Of the column in the table.
  CellKind kind;
  CellReader reader;  // Of the cells, or of those inside of lists.
  bool as_number;     // They are numbers of a numeric column.
  bool one_key;       // Each is the text of one key, so that no rule has to be chosen.
  ColumnTexts texts;  // For messages.
};

class ColumnParser : public RowParser {
 public:
  ColumnParser(const DataSpec& data, const std::vector<LabelSpec>& labels,
               std::shared_ptr<const ColumnTable> table)
      : table_(std::move(table)),
        missing_(data.missing),
        missing_is_number_(ParseNumber(data.missing).has_value()),
        rules_(data, labels, '.') {}

  Status Bind(const std::string& name, bool labels_read) {
    std::vector<ColumnSpec> specs;
    for (const CellColumn& column : rules_.columns()) specs.push_back(column.spec);
    HDPS_ASSIGN_OR_RETURN(const std::vector<uint32_t> found,
                          FindColumns(*table_, specs, name, labels_read));
    for (size_t c = 0; c < specs.size(); ++c) {
      const ColumnSpec& spec = specs[c];
      if (found[c] == CellOrder::kAbsent || spec.type == ColumnType::kSkip) continue;
      if (!labels_read && MayBeAbsent(spec.type)) continue;
      const CellType& type = table_->columns()[found[c]].type;
      if (const std::string why = WhyNotReadable(spec, type); !why.empty()) {
        return {Code::kInvalidArgument, name + ": column '" + Printable(spec.cell()) +
                                            "' has the type " + type.name + ": " + why};
      }
      const CellType& cells = IsList(type.kind) ? *type.values : type;
      const CellReader reader(cells);
      const bool as_number = spec.type == ColumnType::kNumeric && reader.has_numbers();
      const bool one_key = spec.type == ColumnType::kCategorical && spec.vocab_size == 0;
      sources_.push_back({&rules_.columns()[c], found[c], type.kind, reader, as_number, one_key,
                          ColumnTexts(type, spec.separator)});
    }
    return {};
  }

  std::optional<RowError> Parse(std::string_view line, Row* row) override {
    const std::optional<uint64_t> number = RowNumberOf(line);
    if (!number || *number >= table_->num_rows()) return RowError{{}, {}, "a row of the table"};
    const ColumnTable::Place place = table_->PlaceOf(*number, batch_);
    batch_ = place.batch;
    if (*number != last_row_ + 1) Prefetch(place);
    last_row_ = *number;
    rules_.Begin(row);
    for (const Source& source : sources_) {
      const ColumnChunk& chunk = table_->chunk(place.batch, source.index);
      std::optional<RowError> error = source.as_number ? AddNumber(source, chunk, place.index, row)
                                      : IsList(source.kind)
                                          ? AddList(source, chunk, place.index, row)
                                          : AddText(source, chunk, place.index, row);
      if (error) return error;
    }
    return std::nullopt;
  }

  std::vector<NamedText> Values(std::string_view line) override {
    std::vector<NamedText> values;
    const std::optional<uint64_t> number = RowNumberOf(line);
    if (!number || *number >= table_->num_rows()) return values;
    const ColumnTable::Place place = table_->PlaceOf(*number);
    for (const Source& source : sources_) {
      if (!source.column->spec.has_cell()) continue;
      NamedText& value = values.emplace_back();
      value.name = source.column->spec.name;
      source.texts.Append(table_->chunk(place.batch, source.index), place.index, &value.text);
    }
    return values;
  }

 private:
  // Asks for all cells of a row at once, because rows come in a random order and each of their
  // cells lies elsewhere: one after the other they would be waited for.
  void Prefetch(const ColumnTable::Place& place) const {
    for (const Source& source : sources_) {
      PrefetchCell(source.kind, table_->chunk(place.batch, source.index), place.index);
    }
    for (const Source& source : sources_) {
      if (!IsText(source.kind)) continue;
      const ColumnChunk& chunk = table_->chunk(place.batch, source.index);
      if (HasCell(chunk, place.index)) PrefetchText(source.kind, chunk, place.index);
    }
  }

  std::optional<RowError> AddNumber(const Source& source, const ColumnChunk& chunk, int64_t index,
                                    Row* row) {
    double& number = row->numbers.emplace_back(kMissingNumber);
    double value = 0;
    if (!source.reader.Number(chunk, index, &value)) return std::nullopt;
    std::string_view text;
    if (missing_is_number_ && source.reader.Text(chunk, index, &text_, &text) && text == missing_) {
      return std::nullopt;
    }
    if (!std::isfinite(value)) {
      source.reader.Text(chunk, index, &text_, &text);
      return RowError{text, source.column->spec.name, "a number"};
    }
    number = value;
    return std::nullopt;
  }

  std::optional<RowError> AddText(const Source& source, const ColumnChunk& chunk, int64_t index,
                                  Row* row) {
    std::string_view text;
    if (!source.reader.Text(chunk, index, &text_, &text)) text = {};
    text = Trimmed(text);
    if (!source.one_key) return rules_.AddCell(*source.column, text, row);
    if (rules_.IsMissing(text)) text = {};
    row->AddFeature(FeatureKey(source.column->salt, text));
    return std::nullopt;
  }

  std::optional<RowError> AddList(const Source& source, const ColumnChunk& chunk, int64_t index,
                                  Row* row) {
    const CellRange cells = ListAt(source.kind, chunk, index);
    std::string_view text;
    for (int64_t i = cells.begin; i < cells.end; ++i) {
      if (!source.reader.Text(*chunk.values, i, &text_, &text)) continue;
      text = Trimmed(text);
      if (text.empty()) continue;
      if (auto error = CellRules::AddValue(*source.column, text, row)) return error;
      // A list may be far longer than a row may have keys.
      if (row->keys.size() > kRowKeysMax) break;
    }
    return CellRules::EndValues(*source.column, text, row);
  }

  static std::string_view Trimmed(std::string_view text) {
    const auto may_be_blank = [](char c) { return static_cast<unsigned char>(c) <= ' '; };
    const bool trim = !text.empty() && (may_be_blank(text.front()) || may_be_blank(text.back()));
    return trim ? TrimBlanks(text) : text;
  }

  const std::shared_ptr<const ColumnTable> table_;
  const std::string missing_;
  const bool missing_is_number_;
  CellRules rules_;
  std::vector<Source> sources_;
  uint64_t last_row_ = 0;
  size_t batch_ = 0;  // Of the last row, because neighbours are likely to be there too.
  CellText text_;     // Of the current cell.
};

}  // namespace

Result<std::unique_ptr<RowParser>> NewColumnParser(const DataSpec& data,
                                                   const std::vector<LabelSpec>& labels,
                                                   std::shared_ptr<const ColumnTable> table,
                                                   const std::string& name) {
  auto parser = std::make_unique<ColumnParser>(data, labels, std::move(table));
  HDPS_RETURN_IF_ERROR(parser->Bind(name, labels[0].num_classes != kLabelsNotRead));
  return std::unique_ptr<RowParser>(std::move(parser));
}

}  // namespace hdps
