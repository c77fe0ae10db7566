// Knows the names of outputs.
#include "tools/serve/requests/answer_columns.h"

#include <algorithm>

#include "tools/serve/requests/json_text.h"

namespace hdps {
namespace {

constexpr std::string_view kTopKName = "top_k", kTopKScoreName = "top_k_score";

bool IsOfTopK(std::string_view name) { return name == kTopKName || name == kTopKScoreName; }

}  // namespace

ScoreOutput OutputOfName(std::string_view name) {
  if (name == "logit") return ScoreOutput::kLogit;
  if (name == "user_vector") return ScoreOutput::kUserVector;
  if (name == "item_vector") return ScoreOutput::kItemVector;
  if (IsOfTopK(name)) return ScoreOutput::kTopK;
  return ScoreOutput::kPrediction;
}

std::vector<const OutputColumn*> ColumnsOf(const ScoreAnswer& answer,
                                           const std::vector<std::string>& names) {
  std::vector<const OutputColumn*> columns;
  if (names.empty()) {
    for (const OutputColumn& column : answer.outputs) columns.push_back(&column);
  }
  const bool scores_asked = std::ranges::find(names, kTopKScoreName) != names.end();
  for (const std::string& name : names) {
    for (const OutputColumn& column : answer.outputs) {
      const bool unasked_scores =
          name == kTopKName && column.name == kTopKScoreName && !scores_asked;
      if (column.name == name || unasked_scores) columns.push_back(&column);
    }
  }
  return columns;
}

bool HasWidth(const OutputColumn& column) { return column.width > 1 || IsOfTopK(column.name); }

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
