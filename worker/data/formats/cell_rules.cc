// Adds each kind of cell to a row.
#include "worker/data/formats/cell_rules.h"

#include <algorithm>
#include <cmath>

#include "common/base/hash.h"
#include "common/job/job_facts.h"
#include "worker/data/formats/derived_features.h"
#include "worker/data/number.h"

namespace hdps {

CellRules::CellRules(const DataSpec& data, const std::vector<LabelSpec>& labels, char decimal)
    : decimal_(decimal),
      missing_(data.missing),
      missing_is_number_(ParseNumber(data.missing).has_value()),
      labels_read_(labels[0].num_classes != kLabelsNotRead),
      rules_(labels.size(), LabelRule({}, 2)) {
  for (const ColumnSpec& spec : data.columns) {
    columns_.push_back({spec, HashString(spec.key_space()), rules_.size()});
    CellColumn& column = columns_.back();
    if (spec.type != ColumnType::kLabel) continue;
    for (size_t task = 0; task < labels.size(); ++task) {
      if (!labels[task].name.empty() && labels[task].name != spec.name) continue;
      column.task = task;
      rules_[task] = LabelRule(spec.positive, labels[task].num_classes, spec.classes);
    }
  }
  // Without a label column all rows are positive.
  const bool labelled =
      std::ranges::any_of(columns_, [this](const CellColumn& c) { return c.task < rules_.size(); });
  if (!labelled) label_ = 1;
}

std::optional<RowError> CellRules::AddCell(const CellColumn& column, std::string_view cell,
                                           Row* row) {
  const bool missing = IsMissing(cell);
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
        if (auto error = AddValue(column, missing ? std::string_view() : cell, row)) return error;
      }
      row->EndFeature();
      break;
    case ColumnType::kMulti:
      if (!missing) {
        if (auto error = AddValues(column, cell, row)) return error;
      }
      return EndValues(column, cell, row);
  }
  return std::nullopt;
}

std::optional<double> CellRules::NumberOf(std::string_view cell) {
  if (decimal_ == '.') return ParseNumber(cell);
  return cell.find('.') == cell.npos ? ParseNumber(WithPoint(cell)) : std::nullopt;
}

std::string_view CellRules::WithPoint(std::string_view cell) {
  with_point_ = cell;
  std::ranges::replace(with_point_, decimal_, '.');
  return with_point_;
}

std::optional<RowError> CellRules::AddLabel(const CellColumn& column, std::string_view cell,
                                            bool missing, Row* row) {
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

std::optional<RowError> CellRules::AddId(const CellColumn& column, std::string_view value,
                                         Row* row) {
  const std::optional<uint64_t> id = ParseId(value);
  if (!id) return RowError{value, column.spec.name, "an id: a whole number from 0 on"};
  if (*id < column.spec.vocab_size) {
    row->keys.push_back(IdKey(column.salt, *id));
  } else {
    ++row->unknown_ids;
  }
  return std::nullopt;
}

std::optional<RowError> CellRules::AddValues(const CellColumn& column, std::string_view cell,
                                             Row* row) {
  const std::string& separator = column.spec.separator;
  while (true) {
    const size_t end = separator.empty() ? std::string_view::npos : cell.find(separator);
    const std::string_view value = TrimBlanks(cell.substr(0, end));
    if (!value.empty()) {
      if (auto error = AddValue(column, value, row)) return error;
    }
    if (end == std::string_view::npos) return std::nullopt;
    cell.remove_prefix(end + separator.size());
  }
}

std::optional<RowError> CellRules::EndValues(const CellColumn& column, std::string_view cell,
                                             Row* row) {
  row->EndFeature();
  if (row->keys.size() <= kRowKeysMax) return std::nullopt;
  return RowError{cell, column.spec.name, "fewer values in a row"};
}

}  // namespace hdps
