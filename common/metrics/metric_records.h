// One record for each metric, and the passes over the examples that compute it.
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

// Takes each example once, in the order that its record asks for, and then gives the figure.
class MetricPass {
 public:
  virtual ~MetricPass() = default;
  virtual void Add(const ScoredExample& example) = 0;
  // Returns the figure without its word; called once.
  virtual Figure Finish() = 0;
  // Bins for a calibration plot; most metrics have none.
  virtual std::vector<CalibrationBin> Bins() const { return {}; }
};

struct MetricRecord {
  std::string word;     // With `number`, the part before "@".
  std::string name;     // Display name, "PR AUC".
  bool number = false;  // The word has a number, "hr@10".
  bool higher_is_better = true;
  ScoreOrder order = ScoreOrder::kByScore;  // kByGroup requires a group column.
  std::vector<ScoreKind> kinds;             // Kinds to which it applies.
  std::string doc;
  std::function<std::unique_ptr<MetricPass>(size_t k)> make;
};

// Defined in threshold_metrics.cc and group_metrics.cc.
std::vector<MetricRecord> ThresholdMetrics();
std::vector<MetricRecord> GroupMetrics();

// A word's record and its number.
struct KnownMetric {
  const MetricRecord* record = nullptr;
  size_t k = 0;
};
std::optional<KnownMetric> FindMetric(const std::string& word);

inline bool IsPositive(const ScoredExample& example) { return example.label > 0.5f; }

// Collects examples of equal score: the weight of those with label 1, and that of the others.
//
// Invariant: the examples arrive by falling score.
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
  // Ends the last tie too; Finish() calls it.
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
