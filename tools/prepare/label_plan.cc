// Names that labels have, and values that they have.
#include "tools/prepare/label_plan.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "common/base/nearest_name.h"
#include "worker/data/number.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

constexpr std::array kLabelNames = {"label",      "target",     "click",    "clicked",  "is_click",
                                    "is_clicked", "class",      "y",        "outcome",  "response",
                                    "converted",  "conversion", "purchase", "survived", "churn"};
constexpr std::array kYes = {"yes", "y",     "true",    "t",      "1",    "positive",
                             "pos", "click", "clicked", "bought", "good", "default"};
constexpr std::array kNo = {"no", "n", "false", "f", "0", "-1", "negative", "neg", "bad"};

using Values = std::vector<FrequentValues::Value>;

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

template <typename List>
bool IsOneOf(const List& list, const std::string& text) {
  return std::ranges::any_of(list, [&](const char* word) { return text == word; });
}

// The texts of a column that say something.
Values ValuesOf(const ColumnProfile& column, size_t count) {
  Values values = column.frequent.Top(count + std::size(kMissingTexts));
  std::erase_if(values, [](const auto& value) {
    return std::ranges::find(kMissingTexts, value.text) != std::end(kMissingTexts);
  });
  values.resize(std::min(count, values.size()));
  return values;
}

bool HasTwoValues(const ColumnProfile& column) { return ValuesOf(column, 3).size() == 2; }

// Labels that need no texts: 0 and 1, or -1 and 1, however they are written.
bool AreNumbers(const Values& values) {
  return std::ranges::all_of(values, [](const auto& value) {
    const std::optional<double> number = ParseNumber(value.text);
    return number && (*number == 0 || *number == 1 || *number == -1);
  });
}

// ">50K." is ">50K", and "YES" is "yes".
std::string Plain(const std::string& text) {
  std::string plain = Lower(text);
  while (!plain.empty() && (plain.back() == '.' || plain.back() == ' ')) plain.pop_back();
  return plain;
}

size_t PositiveOf(const Values& values) {
  for (size_t v = 0; v < values.size(); ++v) {
    if (IsOneOf(kYes, Plain(values[v].text))) return v;
  }
  for (size_t v = 0; v < values.size(); ++v) {
    if (IsOneOf(kNo, Plain(values[v].text))) return 1 - v;
  }
  return 1;  // The rarer one: values are in falling order.
}

std::string NamesOf(const DataProfile& profile, const std::vector<size_t>& columns) {
  constexpr size_t kShownMax = 8;
  std::string names;
  for (size_t i = 0; i < columns.size() && i < kShownMax; ++i) {
    names += (i == 0 ? "'" : ", '") + Printable(profile.columns[columns[i]].name) + "'";
  }
  return columns.size() > kShownMax ? names + ", ..." : names;
}

Result<size_t> FindLabel(const DataProfile& train, const std::string& name) {
  if (train.layout.format != DataFormat::kCsv) {
    if (name.empty() || name == "label") return size_t{0};
    return Status(Code::kInvalidArgument, "--label=" + name +
                                              ": the label of this format stands "
                                              "first in a row: expected no --label");
  }
  std::vector<std::string> known;
  std::vector<size_t> two, named;
  for (size_t c = 0; c < train.columns.size(); ++c) {
    const ColumnProfile& column = train.columns[c];
    if (!name.empty() && column.name == name) return c;
    known.push_back(column.name);
    if (!HasTwoValues(column)) continue;
    two.push_back(c);
    if (IsOneOf(kLabelNames, Lower(column.name))) named.push_back(c);
  }
  if (!name.empty()) {
    return Status(Code::kInvalidArgument, "--label=" + name + ": there is no such column in " +
                                              train.files[0] + DidYouMean(name, known));
  }
  if (named.size() == 1) return named[0];
  if (named.empty() && two.size() == 1) return two[0];
  // As most tables have it: at the end, or in front as 0 and 1.
  if (named.empty() && !two.empty()) {
    if (two.back() + 1 == train.columns.size()) return two.back();
    if (two.front() == 0 && AreNumbers(ValuesOf(train.columns[0], 2))) return size_t{0};
  }
  return Status(
      Code::kInvalidArgument,
      train.files[0] + ": no column is the label beyond doubt: " +
          (two.empty() ? "none has two values"
                       : "of two values are " + NamesOf(train, named.empty() ? two : named)) +
          "; give it with --label=NAME");
}

// Texts of the labels to evaluate on that are written in another way.
void AddEvalTexts(const ColumnProfile& eval, const Values& values, size_t positive,
                  LabelPlan* plan) {
  for (const auto& value : ValuesOf(eval, 10)) {
    if (value.text == values[0].text || value.text == values[1].text) continue;
    if (Plain(value.text) == Plain(values[positive].text)) {
      plan->positive.push_back(value.text);
    } else if (Plain(value.text) != Plain(values[1 - positive].text)) {
      plan->notes.push_back("the files to evaluate on have the label '" + Printable(value.text) +
                            "', which no row to train on has; it counts as 0");
    }
  }
}

}  // namespace

Result<LabelPlan> PlanLabel(const DataProfile& train, const DataProfile* eval,
                            const std::string& name) {
  LabelPlan plan;
  HDPS_ASSIGN_OR_RETURN(plan.column, FindLabel(train, name));
  const ColumnProfile& column = train.columns[plan.column];
  const Values values = ValuesOf(column, 4);
  const std::string place = train.files[0] + ": label '" + Printable(column.name) + "'";
  if (values.size() != 2) {
    std::string shown;
    for (const auto& value : values) {
      shown += (shown.empty() ? "'" : ", '") + Printable(value.text) + "'";
    }
    return Status(Code::kInvalidArgument,
                  place + " has " + (values.size() < 2 ? "one value" : "more than two values") +
                      (values.empty() ? "" : ": " + shown) + (values.size() > 3 ? ", ..." : "") +
                      "; expected two (0 and 1, -1 and 1, or two words)");
  }
  size_t positive = PositiveOf(values);
  if (AreNumbers(values)) {
    positive = *ParseNumber(values[0].text) > *ParseNumber(values[1].text) ? 0 : 1;
    if (*ParseNumber(values[positive].text) != 1) {
      return Status(
          Code::kInvalidArgument,
          place + " is 0 or -1 in all rows, which both mean 0; expected 0 and 1, or -1 and 1");
    }
  } else {
    plan.positive = {values[positive].text};
    if (eval != nullptr) AddEvalTexts(eval->columns[plan.column], values, positive, &plan);
  }
  plan.positives = values[positive].count;
  plan.negatives = values[1 - positive].count;
  plan.missing = column.cells - plan.positives - plan.negatives;
  return plan;
}

}  // namespace hdps
