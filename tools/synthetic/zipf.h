// Draws numbers whose frequency falls with a power of their rank, like the keys of logs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/platform/random.h"

namespace hdps {

// Draws k from [0, count) with probability proportional to (k + 1)^-exponent, exponent >= 0, by
// rejection-inversion (Hörmann and Derflinger, 1996). It has no table, and needs about one draw of
// `random` per number.
class Zipf {
 public:
  Zipf(uint64_t count, double exponent)
      : count_(static_cast<double>(count)),
        exponent_(exponent),
        area_first_(Area(1.5) - 1),
        area_all_(Area(count_ + 0.5)),
        sure_(2 - InverseArea(Area(2.5) - Height(2))) {}

  uint64_t Draw(Random& random) const {
    while (true) {
      const double u = area_all_ + random.Unit() * (area_first_ - area_all_);
      const double x = InverseArea(u);
      const double k = std::clamp(std::floor(x + 0.5), 1.0, count_);
      if (k - x <= sure_ || u >= Area(k + 0.5) - Height(k)) return static_cast<uint64_t>(k) - 1;
    }
  }

 private:
  static double Log1pOver(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2; }
  static double Expm1Over(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2; }
  double Height(double x) const { return std::exp(-exponent_ * std::log(x)); }
  // Area is the integral of Height from 1 to x; InverseArea is its inverse.
  double Area(double x) const {
    const double log_x = std::log(x);
    return Expm1Over((1 - exponent_) * log_x) * log_x;
  }
  double InverseArea(double area) const {
    return std::exp(Log1pOver(std::max(area * (1 - exponent_), -1.0)) * area);
  }

  double count_;
  double exponent_;
  double area_first_, area_all_;
  // A draw this close to its integer is accepted without a second test.
  double sure_;
};

}  // namespace hdps
