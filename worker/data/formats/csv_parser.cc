// Parses lines of cells by the columns of the job.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "worker/data/formats/cell_rules.h"
#include "worker/data/formats/cell_scan.h"
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
        header_(data.header),
        rules_(data, labels, decimal_),
        columns_(rules_.columns()) {
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
    for (const CellColumn& column : columns_) {
      const ColumnType type = column.spec.type;
      num_labels += type == ColumnType::kLabel ? 1 : 0;
      num_numbers_ += type == ColumnType::kNumeric ? 1 : 0;
      num_keys_ += type == ColumnType::kCategorical ? 1 : 0;
      plain_.push_back({type, column.salt});
      special |= !column.spec.has_cell() || column.spec.vocab_size > 0;
    }
    if (num_labels + num_numbers_ + num_keys_ < columns_.size() || num_labels > 1 || special ||
        rules_.num_tasks() > 1 || delimiter_ == ' ' || delimiter_ == '"' || decimal_ != '.' ||
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
    rules_.Begin(row);
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
      const bool missing = rules_.IsMissing(cell);
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
      } else if (rules_.AddLabel(columns_[c], cell, missing, row)) {
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
    rules_.Begin(row);
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
      if (auto error = rules_.AddCell(columns_[c], cell, row)) return error;
    }
    if (at <= line.size()) return RowError{line.substr(at), {}, expected_cells_};
    return std::nullopt;
  }

  // Parses a line whose cells have another order, are read by several columns, or are incomplete.
  std::optional<RowError> ParseInOrder(const CellOrder& order, std::string_view expected,
                                       std::string_view line, Row* row) {
    rules_.Begin(row);
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
      if (auto error = rules_.AddCell(columns_[c], cell, row)) return error;
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

  const char delimiter_;
  const std::optional<char> quote_;  // Around cells; none: quotes are letters.
  const char decimal_;
  const bool header_;
  CellRules rules_;
  const std::vector<CellColumn>& columns_;  // Those of rules_.
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
  std::string unquoted_;  // The current cell, if it has quotes inside.
};

}  // namespace

std::unique_ptr<RowParser> NewCsvParser(const DataSpec& data,
                                        const std::vector<LabelSpec>& labels) {
  return std::make_unique<CsvParser>(data, labels);
}

}  // namespace hdps
