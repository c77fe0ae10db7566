// Parses the rows of a table by the columns of the job.
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/columnar/cell_reader.h"
#include "worker/data/columnar/column_sources.h"
#include "worker/data/columnar/packed_rows.h"
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
  size_t cell_bytes;  // As PackedRows::CellBytesOf().
  ColumnTexts texts;  // For messages.
  PackedForm form = PackedForm::kInPlace;
};

class ColumnParser : public RowParser {
 public:
  ColumnParser(const DataSpec& data, const std::vector<LabelSpec>& labels,
               std::shared_ptr<const ColumnTable> table)
      : table_(std::move(table)), missing_(data.missing), rules_(data, labels, '.') {}

  Status Bind(const std::string& name, bool labels_read) {
    std::vector<ColumnSpec> specs;
    for (const CellColumn& column : rules_.columns()) specs.push_back(column.spec);
    HDPS_ASSIGN_OR_RETURN(const std::vector<uint32_t> found,
                          FindColumns(table_->columns(), specs, name, labels_read));
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
                          PackedRows::CellBytesOf(type), ColumnTexts(type, spec.separator)});
      sources_.back().form = FormOf(sources_.back());
    }
    std::vector<PackedColumn> columns;
    for (const Source& source : sources_) {
      columns.push_back({source.index, source.reader, source.column->salt, source.form});
    }
    packed_.emplace(table_, std::move(columns), missing_);
    return {};
  }

  void UseTable(std::shared_ptr<const ColumnTable> table) override {
    table_ = std::move(table);
    packed_->UseTable(table_);
    last_row_ = 0;
    batch_ = 0;
  }

  std::string_view Hold(std::string_view line) override {
    const std::optional<uint64_t> number = RowNumberOf(line);
    return number && *number < table_->num_rows() ? packed_->Pack(*number) : line;
  }

  std::optional<RowError> Parse(std::string_view line, Row* row) override {
    const std::optional<uint64_t> number = RowNumberOf(line);
    const bool packed = packed_->IsPacked(line);
    if (!number || *number >= table_->num_rows() || (!packed && line.size() > kRowNumberBytes)) {
      return RowError{{}, {}, "a row of the table"};
    }
    const bool next = *number == last_row_ + 1;
    last_row_ = *number;
    const ColumnTable::Place place = table_->PlaceOf(*number, batch_);
    batch_ = place.batch;
    rules_.Begin(row);
    if (packed) return ParsePacked(line, place, row);
    if (next) return ParsePacked(packed_->Pack(*number), place, row);
    Prefetch(place);
    for (const Source& source : sources_) {
      const ColumnChunk& chunk = table_->chunk(place.batch, source.index);
      if (auto error = AddCell(source, chunk, place.index, row)) return error;
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
  static PackedForm FormOf(const Source& source) {
    if (source.as_number) return PackedForm::kNumber;
    if (source.one_key && !IsList(source.kind)) return PackedForm::kKey;
    return source.cell_bytes > 0 ? PackedForm::kCell : PackedForm::kInPlace;
  }

  std::optional<RowError> ParsePacked(std::string_view packed, const ColumnTable::Place& place,
                                      Row* row) {
    static constexpr uint8_t kNone = 0;
    for (size_t s = 0; s < sources_.size(); ++s) {
      const Source& source = sources_[s];
      const char* const from = packed_->At(packed, s);
      double number = 0;
      Key key = 0;
      switch (source.form) {
        case PackedForm::kKey:
          std::memcpy(&key, from, sizeof(key));
          row->AddFeature(key);
          continue;
        case PackedForm::kNumber:
          std::memcpy(&number, from, sizeof(number));
          if (std::isinf(number)) break;  // An error, which names the cell.
          row->numbers.push_back(number);
          continue;
        case PackedForm::kCell:
          cell_.cells = from;
          cell_.validity = from[source.cell_bytes] != 0 ? nullptr : &kNone;
          if (auto error = AddCell(source, cell_, 0, row)) return error;
          continue;
        case PackedForm::kInPlace:
          break;
      }
      const ColumnChunk& chunk = table_->chunk(place.batch, source.index);
      if (auto error = AddCell(source, chunk, place.index, row)) return error;
    }
    return std::nullopt;
  }

  std::optional<RowError> AddCell(const Source& source, const ColumnChunk& chunk, int64_t index,
                                  Row* row) {
    if (source.as_number) return AddNumber(source, chunk, index, row);
    if (IsList(source.kind)) return AddList(source, chunk, index, row);
    std::string_view text;
    if (!source.reader.Text(chunk, index, &text_, &text)) text = {};
    return AddText(source, text, row);
  }

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
    double value = 0;
    if (!source.reader.Number(chunk, index, &value)) {
      row->numbers.push_back(kMissingNumber);
      return std::nullopt;
    }
    const auto text_of = [&] {
      std::string_view text;
      source.reader.Text(chunk, index, &text_, &text);
      return text;
    };
    return rules_.AddNumber(*source.column, value, text_of, row);
  }

  std::optional<RowError> AddText(const Source& source, std::string_view text, Row* row) {
    text = TrimmedCell(text);
    if (!source.one_key) return rules_.AddCell(*source.column, text, row);
    rules_.AddKey(*source.column, text, row);
    return std::nullopt;
  }

  std::optional<RowError> AddList(const Source& source, const ColumnChunk& chunk, int64_t index,
                                  Row* row) {
    const CellRange cells = ListAt(source.kind, chunk, index);
    int64_t i = cells.begin;
    const auto next = [&](std::string_view* text) {
      if (i == cells.end) return false;
      if (!source.reader.Text(*chunk.values, i++, &text_, text)) *text = {};
      *text = TrimmedCell(*text);
      return true;
    };
    return CellRules::AddList(*source.column, next, row);
  }

  std::shared_ptr<const ColumnTable> table_;
  const std::string missing_;
  CellRules rules_;
  std::vector<Source> sources_;
  uint64_t last_row_ = 0;
  size_t batch_ = 0;  // Of the last row, because neighbours are likely to be there too.
  CellText text_;     // Of the current cell.
  std::optional<PackedRows> packed_;  // Once the sources are known.
  ColumnChunk cell_;                  // The current cell of a packed row.
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
