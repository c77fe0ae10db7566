// Keeps points of time and examples, and drops old ones.
#include "scheduler/report/training_speed.h"

#include <algorithm>

namespace hdps {

void TrainingSpeed::Begin(TimeMs now, uint64_t examples) { points_ = {{now, examples}}; }

void TrainingSpeed::GoOn(TimeMs now) {
  const TimeMs stood = now - points_.back().at;
  for (Point& point : points_) point.at += stood;
}

std::optional<double> TrainingSpeed::At(TimeMs now, uint64_t examples) {
  points_.push_back({now, examples});
  while (points_.size() > 2 && now - points_[1].at >= kOverMs) points_.pop_front();
  const Point& from = points_.front();
  if (now - from.at < kLeastMs) return std::nullopt;
  const uint64_t more = examples - std::min(examples, from.examples);
  return static_cast<double>(more) * 1000 / static_cast<double>(now - from.at);
}

}  // namespace hdps
