// Compares the frequencies of neighbors, less the effect of chance in a sample.
#include "tools/prepare/columns/whole_shape.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace hdps {
namespace {

constexpr double kDense = 0.3;  // Share of the numbers from least to most that occur, at least.
constexpr double kRepeats = 2;  // Mean rows per number, at least.
constexpr double kFlatDispersion = 2;  // Variance over mean; 1 is chance alone.
constexpr double kIndependent = 0.5;   // Relative difference of neighbors; 1: they are unrelated.
constexpr double kOneForMany = 0.3;
constexpr double kWideRange = 1e6;
constexpr double kUniform = 0.1;  // Largest distance from the uniform distribution, of many;
constexpr double kChance = 1.7;   // of n it may be this over sqrt(n), by Kolmogorov and Smirnov.

bool Falls(const std::vector<double>& counts, double rows) {
  const auto most = static_cast<size_t>(std::ranges::max_element(counts) - counts.begin());
  double first = 0, last = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (4 * i < counts.size()) first += counts[i];
    if (4 * i >= 3 * counts.size()) last += counts[i];
  }
  return 10 * most <= counts.size() && first >= 0.55 * rows && last <= 0.12 * rows;
}

// Is true if round numbers are more frequent, as people round what they measure or guess.
bool IsRounded(const std::vector<double>& counts, double least) {
  constexpr double kTimes = 3;
  constexpr size_t kRangeMin = 20;
  double round = 0, rounds = 0, other = 0, others = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const bool fifth = std::fmod(least + static_cast<double>(i), 5) == 0;
    (fifth ? round : other) += counts[i];
    (fifth ? rounds : others) += 1;
  }
  return counts.size() >= kRangeMin && round / rounds > kTimes * (other / others);
}

bool IsSpread(const std::map<double, double>& counts) {
  const double least = counts.begin()->first, range = counts.rbegin()->first - least;
  if (range < kWideRange) return false;
  double place = 0, distance = 0;
  for (const auto& [value, count] : counts) {
    const double expected = (value - least) / range;
    distance = std::max(distance, std::abs(place / static_cast<double>(counts.size()) - expected));
    ++place;
  }
  const double chance = kChance / std::sqrt(static_cast<double>(counts.size()));
  return counts.size() >= 30 && distance < std::max(kUniform, chance);
}

}  // namespace

WholeShape ShapeOfWhole(const std::vector<double>& sample) {
  std::map<double, double> counts;
  for (const double value : sample) ++counts[value];
  if (counts.size() < 8) return WholeShape::kUnknown;
  // A value that stands for many, as "none" or "not asked", does not count.
  const auto most = std::ranges::max_element(counts, {}, &std::pair<const double, double>::second);
  auto rows = static_cast<double>(sample.size());
  if (most->second > kOneForMany * rows) {
    rows -= most->second;
    counts.erase(most);
  }
  const double least = counts.begin()->first;
  const double range = counts.rbegin()->first - least + 1;
  const auto distinct = static_cast<double>(counts.size());
  if (distinct < kDense * range) {
    return IsSpread(counts) ? WholeShape::kSpread : WholeShape::kUnknown;
  }
  if (rows < kRepeats * distinct) return WholeShape::kUnknown;
  std::vector<double> all(static_cast<size_t>(range));
  for (const auto& [value, count] : counts) all[static_cast<size_t>(value - least)] = count;
  if (Falls(all, rows)) return WholeShape::kFalling;
  const double mean = rows / range;
  double squares = 0, differences = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    squares += (all[i] - mean) * (all[i] - mean);
    if (i > 0) differences += (all[i] - all[i - 1]) * (all[i] - all[i - 1]);
  }
  // Poisson counts have a variance equal to their mean; that of a difference is twice as large.
  if (squares / rows < kFlatDispersion) return WholeShape::kFlat;
  const double independent = (differences - 2 * rows) / (2 * (squares - rows));
  if (independent > kIndependent && IsRounded(all, least)) return WholeShape::kSmooth;
  return independent > kIndependent ? WholeShape::kJagged : WholeShape::kSmooth;
}

}  // namespace hdps
