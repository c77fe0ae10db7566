// Interprets the values of a label.
#include "tools/prepare/columns/label_plan.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "common/base/outside_text.h"
#include "common/base/show_number.h"
#include "tools/prepare/columns/column_names.h"
#include "tools/prepare/columns/label_column.h"
#include "tools/prepare/columns/label_values.h"
#include "worker/data/number.h"
#include "worker/data/row.h"

namespace hdps {
namespace {

constexpr std::array kYes = {"yes", "y",     "true",    "t",      "1",    "positive",
                             "pos", "click", "clicked", "bought", "good", "default"};
constexpr std::array kNo = {"no",       "n",   "false", "f",       "0",       "-1",
                            "negative", "neg", "bad",   "noclick", "no_click"};

Status Mistaken(const std::string& message) { return {Code::kInvalidArgument, message}; }

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

template <typename List>
bool IsOneOf(const List& list, const std::string& text) {
  return std::ranges::any_of(list, [&](const char* word) { return text == word; });
}

// Normalizes ">50K." to ">50K", and "YES" to "yes".
std::string Plain(const std::string& text) {
  std::string plain = Lower(text);
  while (!plain.empty() && (plain.back() == '.' || plain.back() == ' ')) plain.pop_back();
  return plain;
}

// A rule of the form ">=4", "=text" or "text1|text2".
class PositiveRule {
 public:
  explicit PositiveRule(const std::string& text) {
    for (const std::string_view compare : {">=", "<=", ">", "<", "="}) {
      if (!text.starts_with(compare)) continue;
      compare_ = compare;
      break;
    }
    const std::string rest = text.substr(compare_.size());
    bound_ = ParseNumber(rest);
    if (compare_ == "=") {
      texts_ = {rest};
    } else if (compare_.empty()) {
      for (size_t at = 0; at <= rest.size();) {
        const size_t end = std::min(rest.find('|', at), rest.size());
        texts_.push_back(rest.substr(at, end - at));
        at = end + 1;
      }
    }
  }

  bool by_number() const { return texts_.empty(); }
  bool readable() const { return !by_number() || bound_.has_value(); }
  bool Takes(const std::string& text) const {
    if (!by_number()) return std::ranges::find(texts_, text) != texts_.end();
    const std::optional<double> number = ParseNumber(text);
    if (!number) return false;
    if (compare_ == ">=") return *number >= *bound_;
    if (compare_ == "<=") return *number <= *bound_;
    return compare_ == ">" ? *number > *bound_ : *number < *bound_;
  }
  // Returns a text of the rule that `values` lack; empty: they have all.
  std::string Unknown(const LabelValues& values) const {
    for (const std::string& text : texts_) {
      const bool there = std::ranges::any_of(
          values.texts, [&](const FrequentValues::Value& value) { return value.text == text; });
      if (!there) return text;
    }
    return "";
  }

 private:
  std::string_view compare_;
  std::optional<double> bound_;
  std::vector<std::string> texts_;
};

class LabelPlanner {
 public:
  LabelPlanner(const DataProfile& train, const DataProfile* eval, const DataWish& wish,
               size_t column)
      : wish_(wish),
        column_(train.columns[column]),
        eval_(eval == nullptr ? nullptr : &eval->columns[column]),
        csv_(HasNamedColumns(train.layout.format)),
        decimal_(train.layout.decimal),
        values_(column_, decimal_),
        place_(train.files[0] + ": label '" + Printable(column_.name) + "'") {
    plan_.column = column;
  }

  Result<LabelPlan> Plan() {
    HDPS_RETURN_IF_ERROR(Decide());
    for (const auto* texts : {&plan_.positive, &plan_.classes}) {
      for (const std::string& text : *texts) {
        if (EscapeUntrusted(text) == text) continue;
        return Mistaken(
            place_ + " has the text '" + Printable(text) +
            "', which is no UTF-8 and cannot stand in a job: convert the file (iconv -f "
            "LATIN1 -t UTF-8)");
      }
    }
    return plan_;
  }

 private:
  Status Decide() {
    if (values_.texts.empty()) return Mistaken(place_ + " has no value: expected one in every row");
    if (!wish_.positive.empty()) return ByExpression();
    const TaskKind task = wish_.task.value_or(Usual());
    if (values_.distinct < 2 && task != TaskKind::kPositivesOnly) {
      return Mistaken(
          place_ + " has one value: " + values_.Shown(1) +
          "; expected two (0 and 1, -1 and 1, or two words), or more; where all rows are "
          "positive ones of a user and an item, say --task=ranking");
    }
    switch (task) {
      case TaskKind::kBinary:
      case TaskKind::kPositivesOnly:
        return Binary(task);
      case TaskKind::kClasses:
        return Classes();
      case TaskKind::kRating:
        return Rating();
    }
    return {};
  }

  // Returns the task that values and name suggest, and notes the alternatives.
  TaskKind Usual() {
    if (values_.two()) return TaskKind::kBinary;
    if (!values_.numbers) return TaskKind::kClasses;
    const bool may_be_classes = values_.whole && values_.least >= 0 && values_.MayBeClasses();
    const bool rating = NamesRating(column_.name) || HintOf(column_.name) == NameHint::kQuantity;
    const TaskKind task = may_be_classes && !rating && values_.distinct <= 100 ? TaskKind::kClasses
                                                                               : TaskKind::kRating;
    if (values_.distinct <= 2) return task;
    plan_.choices = {task};
    if (task == TaskKind::kClasses) plan_.choices.push_back(TaskKind::kRating);
    if (task == TaskKind::kRating && may_be_classes) plan_.choices.push_back(TaskKind::kClasses);
    plan_.notes.push_back(
        "label '" + column_.name + "' has " + ShowWhole(values_.distinct) + " different numbers: " +
        (task == TaskKind::kClasses
             ? "they are taken for classes; --task=rating takes them for amounts, and "
               "--positive=\">=N\" for yes and no"
             : "they are taken for a rating or an amount (squared error); " +
                   std::string(may_be_classes ? "--task=classes takes them for classes, and "
                                              : "") +
                   "--positive=\">=N\" for yes and no"));
    return task;
  }

  Status ByExpression() {
    if (wish_.task && *wish_.task != TaskKind::kBinary && *wish_.task != TaskKind::kPositivesOnly) {
      return Mistaken("--positive=" + wish_.positive + ": beside --task=" +
                      std::string(WordOf(*wish_.task)) + " no label is yes or no: leave one out");
    }
    if (!csv_) {
      return Mistaken(
          "--positive=" + wish_.positive +
          ": the labels of this format are 0 and 1, or -1 and 1: expected no --positive");
    }
    const PositiveRule rule(wish_.positive);
    if (!rule.readable()) {
      return Mistaken("--positive=" + wish_.positive +
                      ": expected \">=4\" with a number, \"=text\" or \"text1|text2\"");
    }
    if (!values_.complete) {
      return Mistaken(place_ + " has more than " + ShowWhole(LabelValues::kTextsMax) +
                      " different values, which --positive would have to list: write a column of 0 "
                      "and 1");
    }
    if (const std::string unknown = rule.Unknown(values_); !unknown.empty()) {
      return Mistaken("--positive=" + wish_.positive + ": no row has the label '" +
                      Printable(unknown) + "'; the labels are " + values_.Shown(8));
    }
    plan_.task = wish_.task.value_or(TaskKind::kBinary);
    for (const auto& value : values_.texts) {
      const bool positive = rule.Takes(value.text);
      (positive ? plan_.positives : plan_.negatives) += value.count;
      if (positive) plan_.positive.push_back(value.text);
    }
    std::ranges::sort(plan_.positive);
    if (plan_.positives == 0 || plan_.negatives == 0) {
      return Mistaken("--positive=" + wish_.positive + ": of " + values_.Shown(8) + " " +
                      (plan_.positives == 0 ? "none is" : "all are") +
                      " positive: expected some of both");
    }
    plan_.missing = column_.cells - plan_.positives - plan_.negatives;
    return {};
  }

  Status Binary(TaskKind task) {
    plan_.task = task;
    if (values_.binary_numbers || values_.texts.size() == 1) return BinaryNumbers();
    if (!values_.two()) {
      return Mistaken(
          place_ + " has more than two values: " + values_.Shown(4) +
          ": say which mean 1, as with --positive=\">=4\" or --positive=\"text1|text2\"");
    }
    const bool zero_and_minus = values_.numbers && values_.least == -1 && values_.most == 0;
    if (zero_and_minus) {
      return Mistaken(place_ +
                      " is 0 or -1 in all rows, which both mean 0; expected 0 and 1, or -1 and 1");
    }
    if (!csv_) {
      return Mistaken(place_ + " is " + values_.Shown(2) +
                      ": labels of this format are 0 and 1, or -1 and 1: write them so (awk '{$1 = "
                      "$1 == " +
                      values_.texts[1].text + "} 1')");
    }
    const size_t positive = PositiveOf();
    plan_.positive = {values_.texts[positive].text};
    plan_.positives = values_.texts[positive].count;
    plan_.negatives = values_.texts[1 - positive].count;
    plan_.missing = column_.cells - plan_.positives - plan_.negatives;
    if (eval_ != nullptr) AddEvalTexts(positive);
    return {};
  }

  Status BinaryNumbers() {
    for (const auto& value : values_.texts) {
      const std::optional<double> number = NumberOf(value.text, decimal_);
      if (!number) return Mistaken(place_ + " is " + values_.Shown(1) + " in all rows");
      (*number == 1 ? plan_.positives : plan_.negatives) += value.count;
    }
    if (plan_.positives == 0) {
      return Mistaken(place_ +
                      " is 0 or -1 in all rows, which both mean 0; expected 0 and 1, or -1 and 1");
    }
    plan_.missing = column_.cells - plan_.positives - plan_.negatives;
    return {};
  }

  double NumberAt(size_t text) const {
    return NumberOf(values_.texts[text].text, decimal_).value_or(0);
  }

  // Returns which of two texts is positive; if neither is known, the rarer one.
  size_t PositiveOf() {
    for (size_t v = 0; v < 2; ++v) {
      if (IsOneOf(kYes, Plain(values_.texts[v].text)) &&
          !IsOneOf(kYes, Plain(values_.texts[1 - v].text))) {
        // 1 and 2 are codes of unknown meaning.
        if (!values_.numbers) return v;
      }
    }
    for (size_t v = 0; v < 2; ++v) {
      if (IsOneOf(kNo, Plain(values_.texts[v].text)) && !values_.numbers) return 1 - v;
    }
    if (values_.numbers) {
      const bool first = NumberAt(0) > NumberAt(1);
      plan_.notes.push_back("label '" + column_.name + "' is " + values_.Shown(2) + ": '" +
                            values_.texts[first ? 0 : 1].text +
                            "' is taken for 1; --positive=\"=TEXT\" says otherwise");
      return first ? 0 : 1;
    }
    return 1;  // Values are in falling order, so this is the rarer one.
  }

  // Adds texts of the evaluation labels that are spelled differently.
  void AddEvalTexts(size_t positive) {
    for (const auto& value : LabelValues(*eval_, decimal_).texts) {
      if (value.text == values_.texts[0].text || value.text == values_.texts[1].text) continue;
      if (Plain(value.text) == Plain(values_.texts[positive].text)) {
        plan_.positive.push_back(value.text);
      } else if (Plain(value.text) != Plain(values_.texts[1 - positive].text)) {
        plan_.notes.push_back("the files to evaluate on have the label '" + Printable(value.text) +
                              "', which no row to train on has; it counts as 0");
      }
    }
  }

  Status Classes() {
    plan_.task = TaskKind::kClasses;
    constexpr double kClassesMax = 65536;
    const bool from_zero = values_.numbers && values_.whole && values_.least >= 0 &&
                           values_.most < kClassesMax && values_.most < 2 * values_.distinct;
    if (!values_.MayBeClasses() && !from_zero) {
      return Mistaken(place_ + " has " + ShowWhole(values_.distinct) + " different values in " +
                      ShowWhole(static_cast<double>(column_.filled())) +
                      " rows, too many for classes: " + values_.Shown(4) +
                      ": give another column with --label=NAME");
    }
    for (const auto& [text, count] : column_.missing) plan_.missing += count;
    plan_.missing += column_.empty;
    // Numbers from 0 on are the classes themselves.
    if (from_zero && (values_.least == 0 || !csv_)) {
      plan_.num_classes = static_cast<uint32_t>(values_.most) + 1;
      return {};
    }
    if (!csv_) {
      return Mistaken(place_ + " goes from " + ShowNumber("%g", values_.least) + " to " +
                      ShowNumber("%g", values_.most) +
                      ": classes of this format are whole numbers from 0 on");
    }
    for (const auto& value : values_.texts) plan_.classes.push_back(value.text);
    std::ranges::sort(plan_.classes, [this](const std::string& a, const std::string& b) {
      return values_.numbers ? NumberOf(a, decimal_) < NumberOf(b, decimal_) : a < b;
    });
    plan_.num_classes = static_cast<uint32_t>(plan_.classes.size());
    if (eval_ != nullptr) NoteNewClasses();
    return {};
  }

  void NoteNewClasses() {
    for (const auto& value : LabelValues(*eval_, decimal_).texts) {
      if (std::ranges::find(plan_.classes, value.text) != plan_.classes.end()) continue;
      plan_.notes.push_back("the files to evaluate on have the class '" + Printable(value.text) +
                            "', which no row to train on has: such rows are bad ones");
    }
  }

  Status Rating() {
    plan_.task = TaskKind::kRating;
    if (!values_.numbers) {
      return Mistaken(place_ + " has texts, such as " + values_.Shown(3) +
                      ": a rating is a number; say --task=classes, or give another --label");
    }
    for (const auto& [text, count] : column_.missing) plan_.missing += count;
    plan_.missing += column_.empty;
    plan_.mean = column_.numbers.mean();
    plan_.deviation = column_.numbers.deviation();
    return {};
  }

  const DataWish& wish_;
  const ColumnProfile& column_;
  const ColumnProfile* const eval_;
  const bool csv_;
  const std::string decimal_;
  const LabelValues values_;
  const std::string place_;
  LabelPlan plan_;
};

}  // namespace

Result<LabelPlan> PlanLabel(const DataProfile& train, const DataProfile* eval,
                            const DataWish& wish) {
  HDPS_ASSIGN_OR_RETURN(const size_t column, FindLabel(train, wish));
  if (column != kNoColumn) return LabelPlanner(train, eval, wish, column).Plan();
  LabelPlan plan;
  plan.task = TaskKind::kPositivesOnly;
  plan.column = kNoColumn;
  plan.positives = train.rows;
  if (!wish.positive.empty()) {
    return Mistaken("--positive=" + wish.positive + ": " + train.files[0] +
                    " has no label: name its column with --label=NAME");
  }
  if (!wish.task) {
    plan.notes.push_back(
        "no column is a label, and there are a user and an item: every row is taken "
        "for one that happened, and made beside others that did not; --label=NAME "
        "says otherwise");
  }
  return plan;
}

}  // namespace hdps
