// Metrics over all examples together. All use example weights; sums run by falling score.
#include <algorithm>
#include <array>
#include <utility>

#include "common/base/show_number.h"
#include "common/metrics/metric_records.h"
#include "common/metrics/probability.h"

namespace hdps {
namespace {

double ProbabilityOf(const ScoredExample& example) {
  return hdps::ProbabilityOf(static_cast<double>(example.score));
}

// The probability that a random positive example scores above a random negative one; ties count one
// half (Mann and Whitney, 1947). With weights of 1 and fewer than 2^52 pairs, it is exact up to the
// division.
class Auc : public TiePass {
 public:
  Figure Finish() override {
    EndTie();
    if (positives_ > 0 && negatives_ > 0)
      return {"", 0.5 * half_pairs_ / (positives_ * negatives_)};
    return {"", kNoFigure, ""};
  }

 private:
  void Tie(double positives, double negatives) override {
    half_pairs_ += negatives * (2 * positives_ + positives);
    positives_ += positives;
    negatives_ += negatives;
  }
  double half_pairs_ = 0, positives_ = 0, negatives_ = 0;
};

// Average precision: the area under the precision-recall curve as a sum of steps. Each distinct
// score adds (recall at it - recall above it) * precision at it.
class AveragePrecision : public TiePass {
 public:
  Figure Finish() override {
    EndTie();
    return {"", positives_ > 0 ? sum_ / positives_ : kNoFigure};
  }

 private:
  void Tie(double positives, double negatives) override {
    positives_ += positives;
    all_ += positives + negatives;
    if (positives > 0) sum_ += positives * (positives_ / all_);
  }
  double sum_ = 0, positives_ = 0, all_ = 0;
};

// A weighted mean of a value of each example.
class MeanPass : public MetricPass {
 public:
  void Add(const ScoredExample& example) override {
    const auto weight = static_cast<double>(example.weight);
    sum_ += weight * Of(example);
    weight_ += weight;
  }
  Figure Finish() override {
    const double mean = weight_ > 0 ? End(sum_ / weight_) : kNoFigure;
    return {"", mean, std::isinf(mean) ? "a score is infinite" : ""};
  }

 protected:
  virtual double Of(const ScoredExample& example) const = 0;
  virtual double End(double mean) const { return mean; }

 private:
  double sum_ = 0, weight_ = 0;
};

// Returns the loss that is trained on: log(1 + exp(-z)) for label 1, log(1 + exp(z)) for label 0.
double LoglossOf(const ScoredExample& example) {
  const auto z = static_cast<double>(example.score);
  const double against = IsPositive(example) ? -z : z;
  return std::max(against, 0.0) + std::log1p(std::exp(-std::fabs(z)));
}

class Logloss : public MeanPass {
  double Of(const ScoredExample& example) const override { return LoglossOf(example); }
};

class Accuracy : public MeanPass {
  double Of(const ScoredExample& example) const override {
    return (example.score >= 0) == IsPositive(example) ? 1 : 0;
  }
};

class SquaredError : public MeanPass {
  double Of(const ScoredExample& example) const override {
    const double off = static_cast<double>(example.score) - static_cast<double>(example.label);
    return off * off;
  }
  double End(double mean) const override { return std::sqrt(mean); }
};

class AbsoluteError : public MeanPass {
  double Of(const ScoredExample& example) const override {
    return std::fabs(static_cast<double>(example.score) - static_cast<double>(example.label));
  }
};

class Calibration : public MetricPass {
 public:
  void Add(const ScoredExample& example) override {
    const auto weight = static_cast<double>(example.weight);
    predicted_ += weight * ProbabilityOf(example);
    if (IsPositive(example)) observed_ += weight;
  }
  Figure Finish() override {
    if (observed_ > 0) return {"", predicted_ / observed_};
    return {"", kNoFigure, "no label is 1"};
  }

 private:
  double predicted_ = 0, observed_ = 0;
};

// The expected calibration error with bins of equal width (Naeini et al. 2015): the mean, over the
// examples, of the distance between the share of label 1 and the mean score in their bin.
class CalibrationError : public MetricPass {
 public:
  void Add(const ScoredExample& example) override {
    const double probability = ProbabilityOf(example);
    const auto place = static_cast<size_t>(probability * kBins);
    Sums& bin = bins_[std::min(place, kBins - 1)];
    const auto weight = static_cast<double>(example.weight);
    bin.weight += weight;
    bin.predicted += weight * probability;
    if (IsPositive(example)) bin.observed += weight;
  }
  Figure Finish() override {
    double apart = 0, weight = 0;
    for (const Sums& bin : bins_) {
      apart += std::fabs(bin.observed - bin.predicted);
      weight += bin.weight;
    }
    return {"", weight > 0 ? apart / weight : kNoFigure};
  }
  std::vector<CalibrationBin> Bins() const override {
    std::vector<CalibrationBin> bins;
    for (const Sums& bin : bins_) {
      if (bin.weight > 0) {
        bins.push_back({bin.weight, bin.predicted / bin.weight, bin.observed / bin.weight});
      } else {
        bins.emplace_back();
      }
    }
    return bins;
  }

 private:
  static constexpr size_t kBins = 10;
  using Sums = CalibrationBin;  // Holds sums: not divided yet.
  std::array<Sums, kBins> bins_ = {};
};

// The mean logloss divided by that of always predicting the share of label 1 (He et al. 2014, eq.
// 3).
class NormalizedEntropy : public MetricPass {
 public:
  void Add(const ScoredExample& example) override {
    const auto weight = static_cast<double>(example.weight);
    loss_ += weight * LoglossOf(example);
    weight_ += weight;
    if (IsPositive(example)) positives_ += weight;
  }
  Figure Finish() override {
    const double share = weight_ > 0 ? positives_ / weight_ : 0;
    if (share <= 0 || share >= 1) return {"", kNoFigure, ""};
    const double entropy = -share * std::log(share) - (1 - share) * std::log1p(-share);
    return {"", loss_ / weight_ / entropy};
  }

 private:
  double loss_ = 0, weight_ = 0, positives_ = 0;
};

template <typename Pass>
MetricRecord Record(std::string word, std::string name, bool higher, std::vector<ScoreKind> kinds,
                    std::string doc) {
  MetricRecord record;
  record.word = std::move(word);
  record.name = std::move(name);
  record.higher_is_better = higher;
  record.kinds = std::move(kinds);
  record.doc = std::move(doc);
  record.make = [](size_t) { return std::make_unique<Pass>(); };
  return record;
}

}  // namespace

std::vector<MetricRecord> ThresholdMetrics() {
  using enum ScoreKind;
  return {
      Record<Auc>("auc", "AUC", true, {kProbability, kRank}, "area under the ROC curve"),
      Record<Logloss>("logloss", "log loss", false, {kProbability, kClass},
                      "mean of -log(probability of the true label)"),
      Record<AveragePrecision>("pr_auc", "PR AUC", true, {kProbability, kRank},
                               "average precision, the area under precision over recall"),
      Record<Accuracy>("accuracy", "accuracy", true, {kProbability, kClass},
                       "share of labels that a probability of 0.5 or more tells, or the most "
                       "probable class"),
      Record<Calibration>("calibration", "calibration", true, {kProbability},
                          "sum of the probabilities over that of the labels"),
      Record<CalibrationError>("ece", "calibration error", false, {kProbability},
                               "expected calibration error over ten bins of equal width"),
      Record<NormalizedEntropy>("normalized_entropy", "normalized entropy", false, {kProbability},
                                "logloss over that of the mean label"),
      Record<SquaredError>("rmse", "RMSE", false, {kNumber}, "root of the mean squared error"),
      Record<AbsoluteError>("mae", "MAE", false, {kNumber}, "mean absolute error"),
  };
}

}  // namespace hdps
