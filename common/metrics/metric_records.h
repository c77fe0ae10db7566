// One record a metric, and what passes over the examples for it.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/metrics/metric.h"
#include "common/metrics/scored_examples.h"

namespace hdps {

inline constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

// Takes the examples in the order of its record, each once, and then gives its figure.
class MetricPass {
 public:
  virtual ~MetricPass() = default;
  virtual void Add(const ScoredExample& example) = 0;
  // Without word; called once.
  virtual Figure Finish() = 0;
  // For a picture of calibration; none as a rule.
  virtual std::vector<CalibrationBin> Bins() const { return {}; }
};

struct MetricRecord {
  std::string word;     // Or with `number` what stands before "@".
  std::string name;     // For people: "PR AUC".
  bool number = false;  // "hr@10"
  bool higher_is_better = true;
  ScoreOrder order = ScoreOrder::kByScore;  // kByGroup: a group column is needed.
  std::vector<ScoreKind> kinds;             // For which it has a meaning.
  std::string doc;
  std::function<std::unique_ptr<MetricPass>(size_t k)> make;
};

// Of threshold_metrics.cc and group_metrics.cc.
std::vector<MetricRecord> ThresholdMetrics();
std::vector<MetricRecord> GroupMetrics();

// The record of a word and its number, or nothing.
struct KnownMetric {
  const MetricRecord* record = nullptr;
  size_t k = 0;
};
std::optional<KnownMetric> FindMetric(const std::string& word);

inline bool IsPositive(const ScoredExample& example) { return example.label > 0.5f; }

// Collects examples of equal scores: the weights of those with label 1, and of the others.
//
// Invariant: the examples come by falling scores.
class TiePass : public MetricPass {
 public:
  void Add(const ScoredExample& example) override {
    if (begun_ && example.score != score_) EndTie();
    begun_ = true;
    score_ = example.score;
    (IsPositive(example) ? positives_ : negatives_) += static_cast<double>(example.weight);
  }

 protected:
  virtual void Tie(double positives, double negatives) = 0;
  // The last one too; Finish calls it.
  void EndTie() {
    if (begun_) Tie(positives_, negatives_);
    begun_ = false;
    positives_ = negatives_ = 0;
  }

 private:
  bool begun_ = false;
  float score_ = 0;
  double positives_ = 0, negatives_ = 0;
};

}  // namespace hdps
