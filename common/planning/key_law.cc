// Sums over the ranks of the values, in ranges that grow with the rank.
#include "common/planning/key_law.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"

namespace hdps {
namespace {

constexpr double kDrawsMax = 1e18;

// Calls `add(ranks, middle)` for ranges of the ranks from 1 to `last`: one by one while they are
// few, then in ranges that grow by one percent.
template <typename Add>
void ForRanks(double last, const Add& add) {
  constexpr double kGrowth = 1.01;
  for (double begin = 1; begin <= last; begin = std::max(begin + 1, std::floor(begin * kGrowth))) {
    const double end = std::min(std::max(begin + 1, std::floor(begin * kGrowth)), last + 1);
    add(end - begin, (begin + end - 1) / 2);
  }
}

double MassOf(double first, double exponent) {
  double mass = 0;
  ForRanks(first,
           [&](double ranks, double middle) { mass += ranks * std::pow(middle, -exponent); });
  return mass;
}

// Returns the probability that a value that comes with probability p is among the draws.
double IsDrawn(double p, double draws) {
  return -std::expm1(draws * std::log1p(-std::min(p, 1 - 1e-12)));
}

// Returns the argument in [low, high] at which a falling function has the wanted value.
template <typename Function>
double Solve(double low, double high, double wanted, const Function& falling) {
  constexpr int kHalvings = 50;
  for (int halving = 0; halving < kHalvings; ++halving) {
    const double middle = (low + high) / 2;
    (falling(middle) > wanted ? low : high) = middle;
  }
  return low;
}

}  // namespace

ValueLaw LawOfHalf(double values, double half) {
  constexpr double kExponentMax = 8;
  values = std::max(values, 1.0);
  const auto others = [&](double exponent) {
    return 1 - MassOf(std::min(half, values), exponent) / MassOf(values, exponent);
  };
  if (others(0) <= 0.5) return {values, 0};
  return {values, Solve(0, kExponentMax, 0.5, others)};
}

std::map<std::string, ValueLaw> LawsOf(const Job& job) {
  std::map<std::string, ValueLaw> laws;
  if (job.data.distinct.empty()) return laws;
  for (const FeatureSpec& feature : job.data.features) {
    if (feature.kind != FeatureKind::kBucketized) continue;
    laws[feature.name] = {double(feature.boundaries.size() + 1), 0};
  }
  for (const auto& [feature, values] : job.data.distinct) {
    const auto half = job.data.distinct_half.find(feature);
    laws[feature] = half == job.data.distinct_half.end()
                        ? ValueLaw{.values = double(values)}
                        : LawOfHalf(double(values), double(half->second));
  }
  return laws;
}

double ExpectedDistinct(double count, double exponent, double draws) {
  return ExpectedDistinctOfFirst(count, count, exponent, draws);
}

double ExpectedDistinctOfFirst(double first, double count, double exponent, double draws) {
  const double mass = MassOf(count, exponent);
  double distinct = 0;
  ForRanks(std::min(first, count), [&](double ranks, double middle) {
    distinct += ranks * IsDrawn(std::pow(middle, -exponent) / mass, draws);
  });
  return distinct;
}

double SquaresBehindFirst(double first, const ValueLaw& law, double draws) {
  const double mass = MassOf(law.values, law.exponent);
  double squares = 0;
  ForRanks(law.values, [&](double ranks, double middle) {
    if (middle <= first) return;
    const double drawn = IsDrawn(std::pow(middle, -law.exponent) / mass, draws);
    squares += ranks * drawn * drawn;
  });
  return squares;
}

double DrawsUntil(double count, double exponent, double distinct) {
  double low = 0, high = std::max(distinct, 1.0);
  while (ExpectedDistinct(count, exponent, high) < distinct && high < kDrawsMax) high *= 2;
  if (high >= kDrawsMax) return std::numeric_limits<double>::infinity();
  constexpr int kHalvings = 40;
  for (int halving = 0; halving < kHalvings; ++halving) {
    const double middle = (low + high) / 2;
    (ExpectedDistinct(count, exponent, middle) < distinct ? low : high) = middle;
  }
  return high;
}

std::vector<double> MostFrequentOf(const std::vector<ValueLaw>& laws, double count) {
  if (count <= 0) return std::vector<double>(laws.size(), 0);
  // Values at least as frequent as exp(log_share), of each law.
  const auto at_least = [&](double log_share) {
    std::vector<double> first;
    for (const ValueLaw& law : laws) {
      const double log_most = -std::log(MassOf(law.values, law.exponent));
      const double above = log_most - log_share;  // How far the first value is above the share.
      const double ranks = law.exponent * std::log(law.values) <= above
                               ? law.values
                               : std::exp(above / law.exponent);
      first.push_back(above < 0 ? 0 : std::min(ranks, law.values));
    }
    return first;
  };
  const auto sum = [](const std::vector<double>& first) {
    double all = 0;
    for (const double values : first) all += values;
    return all;
  };
  constexpr double kLeast = -200;
  const double log_share =
      -Solve(0, -kLeast, -count, [&](double down) { return -sum(at_least(-down)); });
  std::vector<double> some = at_least(log_share);
  // Laws of which many values come alike cross the bound together; each gives an equal share.
  constexpr double kLittle = 1e-9;
  const std::vector<double> more = at_least(log_share - kLittle);
  const double missing = count - sum(some), between = sum(more) - sum(some);
  for (size_t f = 0; f < some.size() && missing > 0 && between > 0; ++f) {
    some[f] += std::min(1.0, missing / between) * (more[f] - some[f]);
  }
  return some;
}

}  // namespace hdps
