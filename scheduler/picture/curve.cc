// Merges values and points of a curve.
#include "scheduler/picture/curve.h"

namespace hdps {

void Curve::Add(Clock step, double value, uint64_t version) {
  if (!points_.empty() && points_.back().step >= step) {
    while (!points_.empty() && points_.back().step >= step) points_.pop_back();
    changed_ = version;
    taken_ = 0;
    sum_ = 0;
  }
  sum_ += value;
  if (++taken_ < each_) return;
  points_.push_back({step, sum_ / taken_, version});
  taken_ = 0;
  sum_ = 0;
  if (points_.size() == kPointsMax) Halve(version);
}

void Curve::Halve(uint64_t version) {
  for (size_t i = 0; i < kPointsMax / 2; ++i) {
    const Point &one = points_[2 * i], &other = points_[2 * i + 1];
    points_[i] = {other.step, (one.value + other.value) / 2, version};
  }
  points_.resize(kPointsMax / 2);
  changed_ = version;
  each_ *= 2;
}

}  // namespace hdps
