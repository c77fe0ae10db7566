// Metrics that take one group of examples after the other, such as the rows of a user.
#include <algorithm>
#include <utility>

#include "common/base/show_number.h"
#include "common/metrics/metric_records.h"

namespace hdps {
namespace {

// Invariant: the examples of a group are contiguous, by falling score, and of equal scores those
// with label 0 come first.
class GroupPass : public MetricPass {
 public:
  void Add(const ScoredExample& example) override {
    if (begun_ && example.group != group_) End();
    if (!begun_) Begin();
    begun_ = true;
    group_ = example.group;
    Take(example);
  }
  Figure Finish() override {
    if (begun_) End();
    std::string about;
    if (left_out_ > 0) {
      about = ShowWhole(static_cast<double>(left_out_)) + " of " +
              ShowWhole(static_cast<double>(left_out_ + counted_)) + " groups " + why_left_out_;
    }
    return {"", weight_ > 0 ? sum_ / weight_ : kNoFigure, about};
  }

 protected:
  explicit GroupPass(std::string why_left_out) : why_left_out_(std::move(why_left_out)) {}
  virtual void Begin() = 0;
  virtual void Take(const ScoredExample& example) = 0;
  // Returns the group's figure and its weight; NaN leaves the group out.
  virtual std::pair<double, double> EndGroup() = 0;

 private:
  void End() {
    const auto [value, weight] = EndGroup();
    begun_ = false;
    if (std::isnan(value)) {
      ++left_out_;
      return;
    }
    ++counted_;
    sum_ += weight * value;
    weight_ += weight;
  }

  const std::string why_left_out_;
  bool begun_ = false;
  Key group_ = 0;
  uint64_t left_out_ = 0, counted_ = 0;
  double sum_ = 0, weight_ = 0;
};

// The mean AUC of the groups, weighted by their examples (impressions). Groups with one class only
// are left out (Zhu et al. 2017, section 5.3).
class GroupAuc : public GroupPass {
 public:
  GroupAuc() : GroupPass("have labels of one class and are left out") {}

 private:
  void Begin() override {
    half_pairs_ = positives_ = negatives_ = tied_ = 0;
    score_ = std::numeric_limits<float>::quiet_NaN();
  }
  // Among equal scores the negatives come first.
  void Take(const ScoredExample& example) override {
    const auto weight = static_cast<double>(example.weight);
    if (example.score != score_) tied_ = 0;
    score_ = example.score;
    if (IsPositive(example)) {
      half_pairs_ += tied_ * weight;
      positives_ += weight;
    } else {
      half_pairs_ += 2 * positives_ * weight;
      tied_ += weight;
      negatives_ += weight;
    }
  }
  std::pair<double, double> EndGroup() override {
    if (positives_ == 0 || negatives_ == 0) return {kNoFigure, 0};
    return {0.5 * half_pairs_ / (positives_ * negatives_), positives_ + negatives_};
  }

  float score_ = 0;
  double half_pairs_ = 0, positives_ = 0, negatives_ = 0;
  double tied_ = 0;  // Negatives with the current score.
};

// A metric of the first k examples of each group with a positive example. A group's weight is the
// mean weight of its positive examples, so 1 without weights.
class TopPass : public GroupPass {
 protected:
  explicit TopPass(size_t k) : GroupPass("have no label 1 and are left out"), k_(k) {}
  virtual double Of() const = 0;

  size_t k_;
  size_t positives_ = 0;
  std::vector<size_t> hits_;  // Positions of positive examples among the first k, from 0.

 private:
  void Begin() override {
    place_ = positives_ = 0;
    weight_ = 0;
    hits_.clear();
  }
  void Take(const ScoredExample& example) override {
    if (IsPositive(example)) {
      ++positives_;
      weight_ += static_cast<double>(example.weight);
      if (place_ < k_) hits_.push_back(place_);
    }
    ++place_;
  }
  std::pair<double, double> EndGroup() override {
    if (positives_ == 0) return {kNoFigure, 0};
    return {Of(), weight_ / static_cast<double>(positives_)};
  }

  size_t place_ = 0;
  double weight_ = 0;
};

class HitRate : public TopPass {
 public:
  explicit HitRate(size_t k) : TopPass(k) {}

 private:
  double Of() const override { return hits_.empty() ? 0 : 1; }
};

// The sum of gains of the first k, each divided by log2(position + 1) with positions from 1,
// relative to the best possible sum (Jarvelin and Kekalainen 2002).
class Ndcg : public TopPass {
 public:
  explicit Ndcg(size_t k) : TopPass(k) {}

 private:
  static double Discount(size_t place) { return 1 / std::log2(static_cast<double>(place + 2)); }
  double Of() const override {
    double gained = 0, best = 0;
    for (const size_t place : hits_) gained += Discount(place);
    for (size_t place = 0; place < std::min(k_, positives_); ++place) best += Discount(place);
    return gained / best;
  }
};

MetricRecord Record(std::string word, std::string name, bool number, std::string doc,
                    std::function<std::unique_ptr<MetricPass>(size_t k)> make) {
  using enum ScoreKind;
  MetricRecord record;
  record.word = std::move(word);
  record.name = std::move(name);
  record.number = number;
  record.order = ScoreOrder::kByGroup;
  record.kinds = {kProbability, kRank};
  record.doc = std::move(doc);
  record.make = std::move(make);
  return record;
}

}  // namespace

std::vector<MetricRecord> GroupMetrics() {
  return {
      Record("group_auc", "group AUC", false,
             "mean of the AUC of each group by the weight of its examples; groups of one class are "
             "left out",
             [](size_t) { return std::make_unique<GroupAuc>(); }),
      Record("hr", "hit rate", true,
             "hit rate: share of the groups with a label 1 that have one among the k highest "
             "scores",
             [](size_t k) { return std::make_unique<HitRate>(k); }),
      Record("ndcg", "NDCG", true, "normalized discounted cumulative gain of the k highest scores",
             [](size_t k) { return std::make_unique<Ndcg>(k); }),
  };
}

}  // namespace hdps
