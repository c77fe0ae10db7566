// Turns the texts of cells into parts of a row, by the columns of the job.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "worker/data/formats/derived_features.h"
#include "worker/data/formats/label.h"
#include "worker/data/row.h"

namespace hdps {

struct LabelSpec;

// A column of the job as rows need it.
struct CellColumn {
  ColumnSpec spec;
  uint64_t salt;  // Of the column's keys.
  size_t task;    // For a label: its task; the number of tasks if it has none.
};

// The rules of cells, which do not depend on what holds them: a file or a table. In all functions a
// cell is its text without blanks around it, and an error's value is a part of it.
class CellRules {
 public:
  // `decimal` is the decimal point of numbers.
  CellRules(const DataSpec& data, const std::vector<LabelSpec>& labels, char decimal);

  const std::vector<CellColumn>& columns() const { return columns_; }
  size_t num_tasks() const { return rules_.size(); }

  // Empties the row. Its label is 1 if the job has no label column.
  void Begin(Row* row) const {
    row->Clear();
    row->label = label_;
    if (rules_.size() > 1) row->task_labels.resize(rules_.size());
  }
  bool IsMissing(std::string_view cell) const { return cell.empty() || cell == missing_; }
  // Adds a cell of any column of columns(), which come in their order.
  std::optional<RowError> AddCell(const CellColumn& column, std::string_view cell, Row* row);

  // The parts of AddCell(), for a caller that knows the column's type. `missing` is
  // IsMissing(cell).
  std::optional<RowError> AddLabel(const CellColumn& column, std::string_view cell, bool missing,
                                   Row* row);
  // Adds a value of a categorical or multi-valued column: a text, or an id if the column has a
  // vocab_size.
  static std::optional<RowError> AddValue(const CellColumn& column, std::string_view value,
                                          Row* row) {
    if (column.spec.vocab_size > 0) return AddId(column, value, row);
    row->keys.push_back(FeatureKey(column.salt, value));
    return std::nullopt;
  }
  // Adds a number of a numeric column; `text_of()` is its text, which is seldom asked for.
  template <typename TextOf>
  std::optional<RowError> AddNumber(const CellColumn& column, double value, const TextOf& text_of,
                                    Row* row) const {
    double& number = row->numbers.emplace_back(kMissingNumber);
    if (missing_is_number_ && text_of() == missing_) return std::nullopt;
    if (!std::isfinite(value)) return RowError{text_of(), column.spec.name, "a number"};
    number = value;
    return std::nullopt;
  }
  // Adds the one key of a categorical column without ids.
  void AddKey(const CellColumn& column, std::string_view cell, Row* row) const {
    row->AddFeature(FeatureKey(column.salt, IsMissing(cell) ? std::string_view() : cell));
  }
  // Adds the values of a list to a multi-valued column: `next(&text)` gives them, each without
  // blanks around it, until it returns false.
  template <typename Next>
  static std::optional<RowError> AddList(const CellColumn& column, const Next& next, Row* row) {
    std::string_view text;
    while (next(&text)) {
      if (text.empty()) continue;
      if (auto error = AddValue(column, text, row)) return error;
      // A list may be far longer than a row may have keys.
      if (row->keys.size() > kRowKeysMax) break;
    }
    return EndValues(column, text, row);
  }
  // Ends the keys of a multi-valued column whose cell was `cell`.
  static std::optional<RowError> EndValues(const CellColumn& column, std::string_view cell,
                                           Row* row);

 private:
  static std::optional<RowError> AddId(const CellColumn& column, std::string_view value, Row* row);
  static std::optional<RowError> AddValues(const CellColumn& column, std::string_view cell,
                                           Row* row);
  std::optional<double> NumberOf(std::string_view cell);
  std::string_view WithPoint(std::string_view cell);

  const char decimal_;
  const std::string missing_;
  const bool missing_is_number_;
  const bool labels_read_;
  float label_ = 0;  // Label of rows whose label is not read or does not exist.
  std::vector<CellColumn> columns_;
  std::vector<LabelRule> rules_;  // [tasks]
  std::string with_point_;        // The current number, if `decimal_` is not a point.
};

}  // namespace hdps
