// The area under the ROC curve by ranks, in whole numbers until the last division.
#include "common/base/auc.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "common/base/show_number.h"

namespace hdps {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr double kProbabilityMin = 1e-7;

bool IsPositive(float label) { return label > 0.5f; }

}  // namespace

double ExactAuc(std::span<const float> scores, std::span<const float> labels) {
  CHECK_EQ(scores.size(), labels.size());
  std::vector<std::pair<float, bool>> ranked;
  ranked.reserve(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) return kNoValue;
    ranked.emplace_back(scores[i], IsPositive(labels[i]));
  }
  std::sort(ranked.begin(), ranked.end());

  // Counted in half pairs: a win is two, a tie is one. n < 2^32 keeps the sum below 2^63.
  uint64_t half_pairs = 0, negatives_below = 0, positives = 0;
  for (size_t begin = 0; begin < ranked.size();) {
    size_t end = begin;
    uint64_t tied_positives = 0;
    for (; end < ranked.size() && ranked[end].first == ranked[begin].first; ++end) {
      tied_positives += ranked[end].second;
    }
    const uint64_t tied_negatives = (end - begin) - tied_positives;
    half_pairs += tied_positives * (2 * negatives_below + tied_negatives);
    negatives_below += tied_negatives;
    positives += tied_positives;
    begin = end;
  }
  if (positives == 0 || negatives_below == 0) return kNoValue;
  return 0.5 * static_cast<double>(half_pairs) /
         (static_cast<double>(positives) * static_cast<double>(negatives_below));
}

std::string WhyNoAuc(std::span<const float> scores, std::span<const float> labels) {
  if (labels.empty()) return "there is no example";
  const auto no_number =
      std::count_if(scores.begin(), scores.end(), [](float score) { return std::isnan(score); });
  if (no_number > 0) {
    return ShowWhole(static_cast<double>(no_number)) + " of " +
           ShowWhole(static_cast<double>(scores.size())) + " scores are not numbers";
  }
  const auto positives = std::count_if(labels.begin(), labels.end(), IsPositive);
  const auto all = static_cast<std::ptrdiff_t>(labels.size());
  if (positives != 0 && positives != all) return "";
  return "all " + ShowWhole(static_cast<double>(all)) + " labels are " +
         (positives == 0 ? "0" : "1");
}

double MeanLogloss(std::span<const float> scores, std::span<const float> labels) {
  CHECK_EQ(scores.size(), labels.size());
  if (scores.empty()) return kNoValue;
  double sum = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) return kNoValue;
    const double p =
        std::clamp(static_cast<double>(scores[i]), kProbabilityMin, 1 - kProbabilityMin);
    sum -= std::log(IsPositive(labels[i]) ? p : 1 - p);
  }
  return sum / static_cast<double>(scores.size());
}

}  // namespace hdps
