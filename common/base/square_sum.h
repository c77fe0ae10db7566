// A sum of squares that comes out the same in whatever order, and wherever, its parts were added.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hdps {

// Invariant: an exact sum of fixed-point numbers, words[0] + 2^64 words[1] + ..., in units of
// 2^-128. What is added is cut to whole units, and is 2^90 at most, so that 2^37 numbers fit.
struct SquareSum {
  std::array<uint64_t, 4> words = {};

  // Requires: not negative, and a number.
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

  // To the nearest, or the number beside it.
  double value() const {
    double value = 0;
    for (size_t i = words.size(); i-- > 0;) {
      value += std::ldexp(static_cast<double>(words[i]), static_cast<int>(64 * i) - 128);
    }
    return value;
  }

  friend bool operator==(const SquareSum&, const SquareSum&) = default;
};

// The squares of one row, added in an order that its length decides.
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
