// What one pass in bounded memory remembers of a column: distinct values, frequent values, a
// sample.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/frequent_keys.h"

namespace hdps {

// How many different values there are, and how often they come: exact up to `kept_max` of them.
// Beyond, values are kept whose hash is below a bound that is halved whenever there are too many
// (adaptive sampling: Wegman; Flajolet, "On adaptive sampling", Computing 43, 1990): a sample of
// the values themselves, however often each comes, which HyperLogLog would not give. The relative
// standard error of the estimates is 1.2 / sqrt(kept_max).
//
// Invariant: kept_ has all values met whose hash has `level_` leading zeros, with exact counts.
class DistinctValues {
 public:
  explicit DistinctValues(size_t kept_max) : kept_max_(kept_max) {}
  void Add(uint64_t hash);

  double distinct() const { return Scaled(kept_.size()); }
  bool exact() const { return level_ == 0; }
  // Values that come so many times or more often.
  double AtLeast(uint32_t times) const;
  // [times_max]: the values that come once, twice, ...; the last one has those beyond, too.
  std::vector<double> ByTimes(size_t times_max) const;

 private:
  double Scaled(size_t kept) const;

  size_t kept_max_;
  uint32_t level_ = 0;
  std::unordered_map<uint64_t, uint32_t> kept_;  // Hash: how often, saturating.
};

// The values that come most, counted by their hashes: exact as long as there are few; beyond, every
// value in more than error() cells is there, and counts are too low by error() at most.
//
// Invariant: texts_ has the texts of the hashes that are counted.
class FrequentValues {
 public:
  struct Value {
    std::string text;
    uint64_t count = 0;
  };

  void Add(uint64_t hash, std::string_view text);
  // So many of the most frequent, in falling order; among equals by their text.
  std::vector<Value> Top(size_t count) const;
  uint64_t error() const { return counts_.error(); }

 private:
  static constexpr size_t kCounters = 1024;
  static constexpr size_t kTextBytesMax = 100;

  FrequentKeys counts_{kCounters + 1};  // It thins when that many are there.
  std::unordered_map<uint64_t, std::string> texts_;
};

// A uniform sample of numbers (Vitter's algorithm R, 1985), the same in every run.
class NumberSample {
 public:
  void Add(double number);
  const std::vector<double>& numbers() const { return numbers_; }
  bool complete() const { return seen_ <= kNumbersMax; }

 private:
  static constexpr size_t kNumbersMax = 16384;
  std::vector<double> numbers_;
  uint64_t seen_ = 0;
};

// Mean, deviation and skewness as numbers come (Welford; Terriberry for the third moment).
class Moments {
 public:
  void Add(double x);
  uint64_t count() const { return count_; }
  double mean() const { return mean_; }
  double deviation() const;  // 0 of less than two.
  double skewness() const;   // 0 where all are alike.
  double min() const { return min_; }
  double max() const { return max_; }

 private:
  uint64_t count_ = 0;
  double mean_ = 0, square_ = 0, cube_ = 0, min_ = 0, max_ = 0;
};

}  // namespace hdps
