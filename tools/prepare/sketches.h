// Summarizes a column in one pass and bounded memory: distinct values, frequent values, a sample.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/frequent_keys.h"

namespace hdps {

// Counts different values and how often each comes, exactly up to `kept_max` of them. Beyond, it
// keeps the values whose hash is below a bound, and halves the bound whenever they are too many
// (adaptive sampling: Wegman; Flajolet, "On adaptive sampling", Computing 43, 1990). This is a
// sample of the values regardless of their counts, which HyperLogLog does not give. The relative
// standard error of the estimates is 1.2 / sqrt(kept_max).
//
// Invariant: kept_ has all values seen whose hash has `level_` leading zeros, with exact counts.
class DistinctValues {
 public:
  explicit DistinctValues(size_t kept_max) : kept_max_(kept_max) {}
  void Add(uint64_t hash);

  double distinct() const { return Scaled(kept_.size()); }
  bool exact() const { return level_ == 0; }
  // Estimates the number of values that come at least `times` times.
  double AtLeast(uint32_t times) const;
  // Estimates how many values come once, twice, ..., [times_max]; the last element also counts all
  // more frequent values.
  std::vector<double> ByTimes(size_t times_max) const;
  // Estimates how many values, the most frequent ones, come together half of all times; at least 1.
  double HalfOfTimes() const;

 private:
  double Scaled(size_t kept) const;

  size_t kept_max_;
  uint32_t level_ = 0;
  std::unordered_map<uint64_t, uint32_t> kept_;  // Count by hash, saturating.
};

// Finds the most frequent values by counting hashes. Counts are exact while the values are few.
// Beyond, every value in more than error() cells is present, and its count is too low by at most
// error().
//
// Invariant: texts_ has the texts of the hashes that are counted.
class FrequentValues {
 public:
  struct Value {
    std::string text;
    uint64_t count = 0;
  };

  void Add(uint64_t hash, std::string_view text);
  // Returns the `count` most frequent values in falling order, equals by their text.
  std::vector<Value> Top(size_t count) const;
  uint64_t error() const { return counts_.error(); }

 private:
  static constexpr size_t kCounters = 1024;
  static constexpr size_t kTextBytesMax = 100;

  // FrequentKeys drops rare hashes when this many are counted.
  FrequentKeys counts_{kCounters + 1};
  std::unordered_map<uint64_t, std::string> texts_;
};

// Keeps a uniform sample of numbers (Vitter's algorithm R, 1985), the same in every run.
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

// Computes mean, deviation and skewness of a stream (Welford; Terriberry for the third moment).
class Moments {
 public:
  void Add(double x);
  uint64_t count() const { return count_; }
  double mean() const { return mean_; }
  double deviation() const;  // 0 for fewer than two numbers.
  double skewness() const;   // 0 if all numbers are equal.
  double min() const { return min_; }
  double max() const { return max_; }

 private:
  uint64_t count_ = 0;
  double mean_ = 0, square_ = 0, cube_ = 0, min_ = 0, max_ = 0;
};

}  // namespace hdps
