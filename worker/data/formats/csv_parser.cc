// Parses lines of cells by the columns of the job.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/job/job_facts.h"
#include "worker/data/formats/cell_scan.h"
#include "worker/data/formats/derived_features.h"
#include "worker/data/formats/label.h"
#include "worker/data/formats/parsers.h"
#include "worker/data/header_check.h"
#include "worker/data/number.h"

namespace hdps {
namespace {

class CsvParser : public RowParser {
 public:
  CsvParser(const DataSpec& data, const std::vector<LabelSpec>& labels)
      : delimiter_(data.delimiter.empty() ? ',' : data.delimiter[0]),
        quote_(data.quote.empty() ? std::nullopt : std::optional(data.quote[0])),
        decimal_(data.decimal.empty() ? '.' : data.decimal[0]),
        missing_(data.missing),
        header_(data.header),
        labels_read_(labels[0].num_classes != kLabelsNotRead),
        rules_(labels.size(), LabelRule({}, 2)) {
    for (const ColumnSpec& spec : data.columns) {
      columns_.push_back({spec, HashString(spec.key_space()), rules_.size()});
      Column& column = columns_.back();
      if (spec.type != ColumnType::kLabel) continue;
      for (size_t task = 0; task < labels.size(); ++task) {
        if (!labels[task].name.empty() && labels[task].name != spec.name) continue;
        column.task = task;
        rules_[task] = LabelRule(spec.positive, labels[task].num_classes, spec.classes);
      }
    }
    // Without a label column all rows are positive.
    const bool labelled =
        std::ranges::any_of(columns_, [this](const Column& c) { return c.task < rules_.size(); });
    if (!labelled) label_ = 1;
    FindPlainCells();
    shared_ = OrderOf(data.columns);
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].spec.has_cell()) column_of_cell_.push_back(c);
    }
    expected_cells_ =
        "as many cells as data.columns has (" + std::to_string(shared_.num_cells) + ")";
  }

  void UseOrder(const CellOrder* order) override {
    if (order != nullptr && order != order_) {
      expected_in_order_ = std::string("as many cells as the ") +
                           (header_ ? "header" : "first row of the file") + " has (" +
                           std::to_string(order->num_cells) + ")";
    }
    order_ = order;
  }

  std::optional<RowError> Parse(std::string_view line, Row* row) override {
    if (order_ != nullptr) return ParseInOrder(*order_, expected_in_order_, line, row);
    if (!plain_.empty() && ParsePlain(line, row)) return std::nullopt;
    return ParseCells(line, row);
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
  // Finds out whether every column is one label, number or key, as in most click logs.
  void FindPlainCells() {
    size_t num_labels = 0;
    bool special = false;
    for (const Column& column : columns_) {
      const ColumnType type = column.spec.type;
      num_labels += type == ColumnType::kLabel ? 1 : 0;
      num_numbers_ += type == ColumnType::kNumeric ? 1 : 0;
      num_keys_ += type == ColumnType::kCategorical ? 1 : 0;
      plain_.push_back({type, column.salt});
      special |= !column.spec.has_cell() || column.spec.vocab_size > 0;
    }
    if (num_labels + num_numbers_ + num_keys_ < columns_.size() || num_labels > 1 || special ||
        rules_.size() > 1 || delimiter_ == ' ' || delimiter_ == '"' || decimal_ != '.' ||
        (quote_ && *quote_ != '"')) {
      plain_.clear();
    }
    ends_.resize(plain_.size());
  }

  // Parses a line without anything special in one pass. Returns false for any other line;
  // ParseCells reports more.
  bool ParsePlain(std::string_view line, Row* row) {
    bool quoted = false;
    const std::span<uint32_t> inner(ends_.data(), ends_.size() - 1);
    bool* const ask = quote_ ? &quoted : nullptr;
    if (ScanCells(line, delimiter_, inner, ask) != inner.size() || quoted) return false;
    ends_.back() = static_cast<uint32_t>(line.size());
    row->Clear();
    row->label = label_;
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

  std::optional<RowError> ParseCells(std::string_view line, Row* row) {
    if (shared_.num_cells < columns_.size()) {
      return ParseInOrder(shared_, expected_cells_, line, row);
    }
    row->Clear();
    row->label = label_;
    if (rules_.size() > 1) row->task_labels.resize(rules_.size());
    size_t at = 0;
    for (size_t c = 0; c < columns_.size(); ++c) {
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

  // Parses a line whose cells have another order, are read by several columns, or are incomplete.
  std::optional<RowError> ParseInOrder(const CellOrder& order, std::string_view expected,
                                       std::string_view line, Row* row) {
    row->Clear();
    row->label = label_;
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
    if (begins_.size() != order.num_cells) {
      const size_t surplus =
          begins_.size() > order.num_cells ? begins_[order.num_cells] : line.size();
      return RowError{line.substr(surplus), {}, expected};
    }
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (order.cell_of_column[c] == CellOrder::kAbsent) continue;
      size_t at = begins_[order.cell_of_column[c]];
      std::string_view cell;
      NextCell(line, &at, &cell);  // Succeeded above.
      if (auto error = AddCell(columns_[c], cell, row)) return error;
    }
    return std::nullopt;
  }

  // Returns the column of a cell; empty if the job has none for it.
  std::string NameOfCell(size_t cell) const {
    if (order_ == nullptr) {
      return cell < column_of_cell_.size() ? columns_[column_of_cell_[cell]].spec.name : "";
    }
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (order_->cell_of_column[c] == cell && columns_[c].spec.has_cell()) {
        return columns_[c].spec.name;
      }
    }
    return "";
  }

  struct Column {
    ColumnSpec spec;
    uint64_t salt;
    size_t task;  // For a label: its task; the number of tasks if it has none.
  };

  // Takes the cell at `*at`, and moves it behind the delimiter, or to line.size() + 1 after the
  // last cell.
  std::optional<RowError> NextCell(std::string_view line, size_t* at, std::string_view* cell) {
    size_t begin = *at;
    while (begin < line.size() && line[begin] == ' ' && delimiter_ != ' ') ++begin;
    if (begin < line.size() && quote_ && line[begin] == *quote_ && delimiter_ != *quote_) {
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
      close = line.find(*quote_, close);
      if (close == std::string_view::npos) {
        return RowError{line.substr(quote), {}, "a closing quote on the same line"};
      }
      if (close + 1 >= line.size() || line[close + 1] != *quote_) break;
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
      if (cell[i] == *quote_) ++i;
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
        if (!labels_read_) break;  // Predicting needs no weight.
        const std::optional<double> weight = missing ? std::nullopt : NumberOf(cell);
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
        const std::optional<double> parsed = NumberOf(cell);
        if (!parsed) return RowError{cell, column.spec.name, "a number"};
        number = *parsed;
        break;
      }
      case ColumnType::kCategorical:
        // A missing text is a value of its own, and a missing id has no row.
        if (!missing || column.spec.vocab_size == 0) {
          if (!AddValue(column, missing ? std::string_view() : cell, row))
            return NoId(column, cell);
        }
        row->EndFeature();
        break;
      case ColumnType::kMulti:
        if (!missing) {
          if (auto error = AddValues(column, cell, row)) return error;
        }
        row->EndFeature();
        if (row->keys.size() > kRowKeysMax) {
          return RowError{cell, column.spec.name, "fewer values in a row"};
        }
        break;
    }
    return std::nullopt;
  }

  std::optional<double> NumberOf(std::string_view cell) {
    if (decimal_ == '.') return ParseNumber(cell);
    return cell.find('.') == cell.npos ? ParseNumber(WithPoint(cell)) : std::nullopt;
  }

  std::string_view WithPoint(std::string_view cell) {
    with_point_ = cell;
    std::ranges::replace(with_point_, decimal_, '.');
    return with_point_;
  }

  std::optional<RowError> AddLabel(const Column& column, std::string_view cell, bool missing,
                                   Row* row) {
    if (column.task == rules_.size()) return std::nullopt;
    const LabelRule& rule = rules_[column.task];
    const bool number = column.spec.positive.empty() && column.spec.classes.empty();
    const std::optional<float> label =
        missing && rule.read() ? std::nullopt
                               : rule.Parse(decimal_ != '.' && number ? WithPoint(cell) : cell);
    if (!label) return RowError{cell, column.spec.name, rule.expected()};
    if (rules_.size() > 1) {
      row->task_labels[column.task] = *label;
    } else {
      row->label = *label;
      row->positive_texts = rule.PositiveText(cell);
    }
    return std::nullopt;
  }

  // Returns false if the value has to be an id and is none.
  static bool AddValue(const Column& column, std::string_view value, Row* row) {
    const uint64_t vocab_size = column.spec.vocab_size;
    if (vocab_size == 0) {
      row->keys.push_back(FeatureKey(column.salt, value));
      return true;
    }
    const std::optional<uint64_t> id = ParseId(value);
    if (id && *id < vocab_size) row->keys.push_back(IdKey(column.salt, *id));
    if (id && *id >= vocab_size) ++row->unknown_ids;
    return id.has_value();
  }

  static RowError NoId(const Column& column, std::string_view value) {
    return {value, column.spec.name, "an id: a whole number from 0 on"};
  }

  static std::optional<RowError> AddValues(const Column& column, std::string_view cell, Row* row) {
    const std::string& separator = column.spec.separator;
    while (true) {
      const size_t end = separator.empty() ? std::string_view::npos : cell.find(separator);
      const std::string_view value = TrimBlanks(cell.substr(0, end));
      if (!value.empty() && !AddValue(column, value, row)) return NoId(column, value);
      if (end == std::string_view::npos) return std::nullopt;
      cell.remove_prefix(end + separator.size());
    }
  }

  const char delimiter_;
  const std::optional<char> quote_;  // Around cells; none: quotes are letters.
  const char decimal_;
  float label_ = 0;  // Label of rows whose label is not read or does not exist.
  const std::string missing_;
  const bool header_, labels_read_;
  std::vector<Column> columns_;
  std::vector<LabelRule> rules_;  // [tasks]
  struct PlainCell {
    ColumnType type;
    uint64_t salt;
  };
  std::vector<PlainCell> plain_;  // [columns]; empty if some are of another kind.
  size_t num_numbers_ = 0, num_keys_ = 0;
  std::vector<uint32_t> ends_;  // Ends of the current line's plain cells.
  const CellOrder* order_ = nullptr;
  // Used for files without a header.
  CellOrder shared_;
  std::vector<size_t> column_of_cell_;
  std::vector<size_t> begins_;  // Begins of the current line's cells, if there is an order.
  std::string expected_cells_, expected_in_order_, error_column_;
  std::string with_point_;  // The current number, if `decimal_` is not a point.
  std::string unquoted_;    // The current cell, if it has quotes inside.
};

}  // namespace

std::unique_ptr<RowParser> NewCsvParser(const DataSpec& data,
                                        const std::vector<LabelSpec>& labels) {
  return std::make_unique<CsvParser>(data, labels);
}

}  // namespace hdps
