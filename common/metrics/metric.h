// Figures of evaluations by their words: what each needs, which way is better, how it is computed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/platform/file_system.h"

namespace hdps {

// What a score is, and so what can be asked of it.
enum class ScoreKind : uint8_t {
  kProbability,  // The logit of that of label 1; labels are 0 or 1.
  kNumber,       // As the labels.
  kClass,        // 1 where the most probable class is the label, else -1; the label is 1.
  kRank          // Any number, larger for what is liked more; labels are 0 or 1.
};

// The metrics of one task.
struct TaskMetrics {
  std::string task;  // Empty: the only one. Figures are called "<task>.<word>" else.
  ScoreKind kind = ScoreKind::kProbability;
  std::vector<std::string> words;  // Each known, and with a meaning for the kind.
};

// A word is that of a record, such as "auc", or with a number, such as "hr@10".
bool IsMetric(const std::string& word);
bool HasMeaning(const std::string& word, ScoreKind kind);
// Of known words.
bool HigherIsBetter(const std::string& word);
bool NeedsGroups(const std::string& word);
// "\"x\" is no metric; did you mean ...?"
std::string WhyNoMetric(const std::string& word);
// The metrics that `kind` is told by where nothing was said.
std::vector<std::string> DefaultMetrics(ScoreKind kind, bool groups);
// A sentence a metric, for the documentation of the job file.
std::string MetricWordsText();

// Part of the range of scores: probabilities in [begin, begin + width), 1 in the last.
struct CalibrationBin {
  double weight = 0;     // Of its examples.
  double predicted = 0;  // The weighted mean of its scores.
  double observed = 0;   // The share of label 1, by weight.
  friend bool operator==(const CalibrationBin&, const CalibrationBin&) = default;
};

struct Figure {
  std::string word;        // "auc", "click.auc"
  double value = 0;        // NaN where there is none.
  std::string about = {};  // Why there is none, or what was left out; for people.
  friend bool operator==(const Figure& a, const Figure& b) {
    return a.word == b.word && a.about == b.about &&
           (a.value == b.value || (a.value != a.value && b.value != b.value));
  }
};

// The figure of the word, or null. Without a task's name: of the first task that has it.
const Figure* FindFigure(const std::vector<Figure>& figures, std::string_view word);

}  // namespace hdps
