// The metrics of evaluations by their words: what each needs, which direction is better, and how it
// is computed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/platform/file_system.h"

namespace hdps {

// The meaning of a score, which determines the metrics that apply.
enum class ScoreKind : uint8_t {
  kProbability,  // The logit of the probability of label 1; labels are 0 or 1.
  kNumber,       // A prediction of the label.
  kClass,        // 1 if the most probable class is the example's, else -1; stored with label 1.
  kRank          // Any number, larger for items that are preferred; labels are 0 or 1.
};

// The metrics of one task.
struct TaskMetrics {
  std::string task;  // Empty for the only task; otherwise figures are called "<task>.<word>".
  ScoreKind kind = ScoreKind::kProbability;
  std::vector<std::string> words;  // All known and applicable to `kind`.
};

// A word is that of a record, such as "auc", or has a number, such as "hr@10".
bool IsMetric(const std::string& word);
bool HasMeaning(const std::string& word, ScoreKind kind);
// Of a figure that is no metric of this project, the larger one is better, unless its name contains
// "loss" or "error".
bool HigherIsBetter(const std::string& word);
// Requires a known word.
bool NeedsGroups(const std::string& word);
// "\"x\" is no metric; did you mean ...?"
std::string WhyNoMetric(const std::string& word);
// Is true for a name that a program may give a figure of its own: 1 to 64 letters, digits, "_" and
// "@", the first of them a letter.
bool IsFigureName(std::string_view name);
// Returns the default metrics of a task of `kind`.
std::vector<std::string> DefaultMetrics(ScoreKind kind, bool groups);
// Returns one sentence for each metric, for the documentation of the job file.
std::string MetricWordsText();

// A bin of the calibration: scores with probabilities in [begin, begin + width); the last bin
// includes 1.
struct CalibrationBin {
  double weight = 0;     // Weight of its examples.
  double predicted = 0;  // Weighted mean of its scores.
  double observed = 0;   // Share of label 1, by weight.
  friend bool operator==(const CalibrationBin&, const CalibrationBin&) = default;
};

struct Figure {
  std::string word;        // "auc", "click.auc"
  double value = 0;        // NaN if there is none.
  std::string about = {};  // For people: why there is none, or what was left out.
  friend bool operator==(const Figure& a, const Figure& b) {
    return a.word == b.word && a.about == b.about &&
           (a.value == b.value || (a.value != a.value && b.value != b.value));
  }
};

// Returns the figure of the word, or null. Without a task name, it is that of the first task with
// it.
const Figure* FindFigure(const std::vector<Figure>& figures, std::string_view word);

}  // namespace hdps
