// A sum of squares whose result does not depend on the order or place of the additions.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hdps {

// An exact sum of fixed-point numbers, words[0] + 2^64 words[1] + ..., in units of 2^-128.
//
// Invariant: each number added was truncated to whole units and is at most 2^90, so the sum holds
// 2^37 numbers.
struct SquareSum {
  std::array<uint64_t, 4> words = {};

  // Requires: `value` is not negative and not NaN.
  void Add(double value) {
    constexpr double kMost = 1.2379400392853803e27;  // 2^90
    constexpr int kMantissaBits = 53, kUnitBits = 128;
    int exponent = 0;
    const double fraction = std::frexp(std::min(value, kMost), &exponent);
    auto mantissa = static_cast<uint64_t>(std::ldexp(fraction, kMantissaBits));
    int shift = exponent - kMantissaBits + kUnitBits;
    if (shift < 0) {
      mantissa = shift > -64 ? mantissa >> -shift : 0;
      shift = 0;
    }
    SquareSum one;
    const auto word = static_cast<size_t>(shift / 64);
    const int bit = shift % 64;
    one.words[word] = mantissa << bit;
    if (bit > 0) one.words[word + 1] = mantissa >> (64 - bit);
    Add(one);
  }
  void Add(const SquareSum& other) {
    uint64_t carry = 0;
    for (size_t i = 0; i < words.size(); ++i) {
      const uint64_t sum = words[i] + other.words[i];
      const uint64_t with_carry = sum + carry;
      carry = (sum < words[i] || with_carry < sum) ? 1 : 0;
      words[i] = with_carry;
    }
  }

  // Returns the sum as a double, at most one unit in the last place away from the nearest one.
  double value() const {
    double value = 0;
    for (size_t i = words.size(); i-- > 0;) {
      value += std::ldexp(static_cast<double>(words[i]), static_cast<int>(64 * i) - 128);
    }
    return value;
  }

  friend bool operator==(const SquareSum&, const SquareSum&) = default;
};

// Returns the sum of the squares of one row. The order of the additions depends only on its length.
inline double SquaresOf(std::span<const float> row) {
  constexpr size_t kLanes = 8;
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= row.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += double{row[i + lane]} * double{row[i + lane]};
    }
  }
  for (; i < row.size(); ++i) lanes[i % kLanes] += double{row[i]} * double{row[i]};
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace hdps
