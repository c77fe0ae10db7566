// Lines of cells, by the columns of the job.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "worker/data/formats/cell_scan.h"
#include "worker/data/formats/derived_features.h"
#include "worker/data/formats/label.h"
#include "worker/data/formats/parsers.h"
#include "worker/data/number.h"

namespace hdps {
namespace {

class CsvParser : public RowParser {
 public:
  CsvParser(const DataSpec& data, const std::vector<LabelSpec>& labels)
      : delimiter_(data.delimiter.empty() ? ',' : data.delimiter[0]),
        missing_(data.missing),
        rules_(labels.size(), LabelRule({}, 2)) {
    for (const ColumnSpec& spec : data.columns) {
      columns_.push_back({spec, HashString(spec.key_space()), rules_.size()});
      Column& column = columns_.back();
      if (spec.type != ColumnType::kLabel) continue;
      for (size_t task = 0; task < labels.size(); ++task) {
        if (!labels[task].name.empty() && labels[task].name != spec.name) continue;
        column.task = task;
        rules_[task] = LabelRule(spec.positive, labels[task].num_classes);
      }
    }
    FindPlainCells();
    expected_cells_ = "as many cells as data.columns has (" + std::to_string(columns_.size()) + ")";
  }

  void UseOrder(const CellOrder* order) override { order_ = order; }

  std::optional<RowError> Parse(std::string_view line, Row* row) override {
    if (order_ != nullptr) return ParseInOrder(line, row);
    if (!plain_.empty() && ParsePlain(line, row)) return std::nullopt;
    std::optional<RowError> error = ParseCells(line, /*label_cell=*/true, row);
    // A row to predict may come without the cells of labels.
    if (error && !rules_[0].read() && !ParseCells(line, /*label_cell=*/false, row)) error.reset();
    return error;
  }

  std::vector<NamedText> Values(std::string_view line) override {
    std::vector<NamedText> values;
    size_t at = 0;
    while (at <= line.size()) {
      std::string_view cell;
      if (NextCell(line, &at, &cell)) break;
      values.push_back({NameOfCell(values.size()), std::string(cell)});
    }
    return values;
  }

 private:
  // Where every column is one label, number or key, as in most click logs.
  void FindPlainCells() {
    size_t num_labels = 0;
    for (const Column& column : columns_) {
      const ColumnType type = column.spec.type;
      num_labels += type == ColumnType::kLabel ? 1 : 0;
      num_numbers_ += type == ColumnType::kNumeric ? 1 : 0;
      num_keys_ += type == ColumnType::kCategorical ? 1 : 0;
      plain_.push_back({type, column.salt});
    }
    if (num_labels + num_numbers_ + num_keys_ < columns_.size() || num_labels > 1 ||
        rules_.size() > 1 || delimiter_ == ' ' || delimiter_ == '"') {
      plain_.clear();
    }
    ends_.resize(plain_.size());
  }

  // The row of a line in which nothing is special, found in one pass. False for any other, of which
  // ParseCells has more to say.
  bool ParsePlain(std::string_view line, Row* row) {
    bool quoted = false;
    const std::span<uint32_t> inner(ends_.data(), ends_.size() - 1);
    if (ScanCells(line, delimiter_, inner, &quoted) != inner.size() || quoted) return false;
    ends_.back() = static_cast<uint32_t>(line.size());
    row->Clear();
    row->numbers.resize(num_numbers_);
    row->keys.resize(num_keys_);
    row->key_ends.resize(num_keys_);
    double* number = row->numbers.data();
    uint32_t num_keys = 0;
    size_t begin = 0;
    for (size_t c = 0; c < plain_.size(); ++c) {
      std::string_view cell = line.substr(begin, ends_[c] - begin);
      begin = ends_[c] + 1;
      if (!cell.empty() && (MayBeBlank(cell.front()) || MayBeBlank(cell.back()))) {
        cell = TrimBlanks(cell);
      }
      const bool missing = cell.empty() || cell == missing_;
      if (plain_[c].type == ColumnType::kCategorical) {
        row->keys[num_keys] = FeatureKey(plain_[c].salt, missing ? std::string_view() : cell);
        row->key_ends[num_keys] = num_keys + 1;
        ++num_keys;
      } else if (plain_[c].type == ColumnType::kNumeric) {
        *number = kMissingNumber;
        if (!missing && !ParseDigits(cell, number)) {
          const std::optional<double> parsed = ParseNumber(cell);
          if (!parsed) return false;
          *number = *parsed;
        }
        ++number;
      } else if (AddLabel(columns_[c], cell, missing, row)) {
        return false;
      }
    }
    return true;
  }
  static bool MayBeBlank(char c) { return static_cast<unsigned char>(c) <= ' '; }

  std::optional<RowError> ParseCells(std::string_view line, bool label_cell, Row* row) {
    row->Clear();
    if (rules_.size() > 1) row->task_labels.resize(rules_.size());
    size_t at = 0;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (!label_cell && columns_[c].spec.type == ColumnType::kLabel) continue;
      if (at > line.size()) {
        return RowError{line.substr(line.size()), columns_[c].spec.name, expected_cells_};
      }
      std::string_view cell;
      if (auto error = NextCell(line, &at, &cell)) {
        error->column = columns_[c].spec.name;
        return error;
      }
      if (auto error = AddCell(columns_[c], cell, row)) return error;
    }
    if (at <= line.size()) return RowError{line.substr(at), {}, expected_cells_};
    return std::nullopt;
  }

  // The same for a line whose cells stand in the order of its file's header.
  std::optional<RowError> ParseInOrder(std::string_view line, Row* row) {
    row->Clear();
    row->label = 0;
    if (rules_.size() > 1) row->task_labels.resize(rules_.size());
    begins_.clear();
    for (size_t at = 0; at <= line.size();) {
      begins_.push_back(at);
      std::string_view cell;
      if (auto error = NextCell(line, &at, &cell)) {
        error_column_ = NameOfCell(begins_.size() - 1);
        error->column = error_column_;
        return error;
      }
    }
    if (begins_.size() != order_->num_cells) {
      expected_in_order_ =
          "as many cells as the header has (" + std::to_string(order_->num_cells) + ")";
      const size_t surplus =
          begins_.size() > order_->num_cells ? begins_[order_->num_cells] : line.size();
      return RowError{line.substr(surplus), {}, expected_in_order_};
    }
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (order_->cell_of_column[c] == CellOrder::kAbsent) continue;
      size_t at = begins_[order_->cell_of_column[c]];
      std::string_view cell;
      NextCell(line, &at, &cell);  // It went well above.
      if (auto error = AddCell(columns_[c], cell, row)) return error;
    }
    return std::nullopt;
  }

  // The column that a cell of a line belongs to; empty where the job has none for it.
  std::string NameOfCell(size_t cell) const {
    if (order_ == nullptr) return cell < columns_.size() ? columns_[cell].spec.name : "";
    const auto column = std::ranges::find(order_->cell_of_column, cell);
    if (column == order_->cell_of_column.end()) return "";
    return columns_[static_cast<size_t>(column - order_->cell_of_column.begin())].spec.name;
  }

  struct Column {
    ColumnSpec spec;
    uint64_t salt;
    size_t task;  // Of a label; as many as there are tasks: of none.
  };

  // Takes the cell at `*at` and moves behind its delimiter, or to line.size() + 1 behind the last.
  std::optional<RowError> NextCell(std::string_view line, size_t* at, std::string_view* cell) {
    size_t begin = *at;
    while (begin < line.size() && line[begin] == ' ' && delimiter_ != ' ') ++begin;
    if (begin < line.size() && line[begin] == '"' && delimiter_ != '"') {
      return NextQuotedCell(line, begin, at, cell);
    }
    const size_t end = std::min(line.find(delimiter_, *at), line.size());
    *cell = TrimBlanks(line.substr(*at, end - *at));
    *at = end + 1;
    return std::nullopt;
  }

  std::optional<RowError> NextQuotedCell(std::string_view line, size_t quote, size_t* at,
                                         std::string_view* cell) {
    bool doubled = false;
    size_t close = quote + 1;
    while (true) {
      close = line.find('"', close);
      if (close == std::string_view::npos) {
        return RowError{line.substr(quote), {}, "a closing quote on the same line"};
      }
      if (close + 1 >= line.size() || line[close + 1] != '"') break;
      doubled = true;
      close += 2;
    }
    *cell = line.substr(quote + 1, close - quote - 1);
    const size_t end = std::min(line.find(delimiter_, close), line.size());
    if (!TrimBlanks(line.substr(close + 1, end - close - 1)).empty()) {
      return RowError{line.substr(close + 1, end - close - 1), {}, "a delimiter behind the quote"};
    }
    if (doubled) *cell = Unquote(*cell);
    *cell = TrimBlanks(*cell);
    *at = end + 1;
    return std::nullopt;
  }

  std::string_view Unquote(std::string_view cell) {
    unquoted_.clear();
    for (size_t i = 0; i < cell.size(); ++i) {
      unquoted_ += cell[i];
      if (cell[i] == '"') ++i;
    }
    return unquoted_;
  }

  std::optional<RowError> AddCell(const Column& column, std::string_view cell, Row* row) {
    const bool missing = cell.empty() || cell == missing_;
    switch (column.spec.type) {
      case ColumnType::kSkip:
        break;
      case ColumnType::kLabel:
        return AddLabel(column, cell, missing, row);
      case ColumnType::kWeight: {
        const std::optional<double> weight = missing ? std::nullopt : ParseNumber(cell);
        row->weight = weight ? static_cast<float>(*weight) : -1.0f;
        if (row->weight >= 0 && std::isfinite(row->weight)) break;
        return RowError{cell, column.spec.name, "a weight: a number from 0 on"};
      }
      case ColumnType::kGroup:
        row->group = FeatureKey(column.salt, missing ? std::string_view() : cell);
        break;
      case ColumnType::kNumeric: {
        double& number = row->numbers.emplace_back(kMissingNumber);
        if (missing || ParseDigits(cell, &number)) break;
        const std::optional<double> parsed = ParseNumber(cell);
        if (!parsed) return RowError{cell, column.spec.name, "a number"};
        number = *parsed;
        break;
      }
      case ColumnType::kCategorical:
        row->AddFeature(FeatureKey(column.salt, missing ? std::string_view() : cell));
        break;
      case ColumnType::kMulti:
        if (!missing) AddValues(column, cell, row);
        row->EndFeature();
        if (row->keys.size() > kRowKeysMax) {
          return RowError{cell, column.spec.name, "fewer values in a row"};
        }
        break;
    }
    return std::nullopt;
  }

  std::optional<RowError> AddLabel(const Column& column, std::string_view cell, bool missing,
                                   Row* row) const {
    if (column.task == rules_.size()) return std::nullopt;
    const LabelRule& rule = rules_[column.task];
    const std::optional<float> label = missing && rule.read() ? std::nullopt : rule.Parse(cell);
    if (!label) return RowError{cell, column.spec.name, rule.expected()};
    if (rules_.size() > 1) {
      row->task_labels[column.task] = *label;
    } else {
      row->label = *label;
      row->positive_texts = rule.PositiveText(cell);
    }
    return std::nullopt;
  }

  static void AddValues(const Column& column, std::string_view cell, Row* row) {
    const std::string& separator = column.spec.separator;
    while (true) {
      const size_t end = separator.empty() ? std::string_view::npos : cell.find(separator);
      const std::string_view value = TrimBlanks(cell.substr(0, end));
      if (!value.empty()) row->keys.push_back(FeatureKey(column.salt, value));
      if (end == std::string_view::npos) return;
      cell.remove_prefix(end + separator.size());
    }
  }

  const char delimiter_;
  const std::string missing_;
  std::vector<Column> columns_;
  std::vector<LabelRule> rules_;  // [tasks]
  struct PlainCell {
    ColumnType type;
    uint64_t salt;
  };
  std::vector<PlainCell> plain_;  // [columns], or empty where some are of another kind.
  size_t num_numbers_ = 0, num_keys_ = 0;
  std::vector<uint32_t> ends_;  // Of the plain cells of the line at hand.
  const CellOrder* order_ = nullptr;
  std::vector<size_t> begins_;  // Of the cells of the line at hand, where there is an order.
  std::string expected_cells_, expected_in_order_, error_column_;
  std::string unquoted_;  // The cell at hand, if it has quotes inside.
};

}  // namespace

std::unique_ptr<RowParser> NewCsvParser(const DataSpec& data,
                                        const std::vector<LabelSpec>& labels) {
  return std::make_unique<CsvParser>(data, labels);
}

}  // namespace hdps
