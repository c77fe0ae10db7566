// Knows outputs by the beginnings of their names.
#include "tools/serve/requests/answer_columns.h"

#include "tools/serve/requests/json_text.h"

namespace hdps {
namespace {

constexpr std::string_view kTopKName = "top_k";

}  // namespace

ScoreOutput OutputOfName(std::string_view name) {
  if (name.starts_with("logit")) return ScoreOutput::kLogit;
  if (name == "user_vector") return ScoreOutput::kUserVector;
  if (name == "item_vector") return ScoreOutput::kItemVector;
  if (name.starts_with(kTopKName)) return ScoreOutput::kTopK;
  return ScoreOutput::kPrediction;
}

std::vector<const OutputColumn*> ColumnsOf(const ScoreAnswer& answer,
                                           const std::vector<std::string>& names) {
  std::vector<const OutputColumn*> columns;
  if (names.empty()) {
    for (const OutputColumn& column : answer.outputs) columns.push_back(&column);
  }
  for (const std::string& name : names) {
    for (const OutputColumn& column : answer.outputs) {
      const bool of_top_k = name == kTopKName && column.name.starts_with(kTopKName);
      if (column.name == name || of_top_k) columns.push_back(&column);
    }
  }
  return columns;
}

bool HasWidth(const OutputColumn& column) {
  return column.width > 1 || column.name.starts_with(kTopKName);
}

void AppendJsonValue(const OutputColumn& column, uint64_t index, std::string* json) {
  if (column.texts.empty()) return AppendJsonNumber(column.numbers[index], json);
  AppendJsonText(column.texts[index], json);
}

void AppendJsonRow(const OutputColumn& column, uint64_t row, std::string* json) {
  if (!HasWidth(column)) return AppendJsonValue(column, row, json);
  *json += '[';
  for (uint64_t i = row * column.width; i < (row + 1) * column.width; ++i) {
    if (i > row * column.width) *json += ',';
    AppendJsonValue(column, i, json);
  }
  *json += ']';
}

}  // namespace hdps
