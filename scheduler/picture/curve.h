// Keeps a curve over steps in bounded memory, however long the job runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

// A figure over the steps of a job. When it is full, each two neighbors become one point, with the
// later step and the mean of both values, and from then on twice as many values make a point.
//
// Invariant: steps grow, and there are at most kPointsMax points.
class Curve {
 public:
  static constexpr size_t kPointsMax = 2000;
  struct Point {
    Clock step = 0;
    double value = 0;      // NaN: not known at this step.
    uint64_t version = 0;  // Of Add().
  };

  // `set`: the evaluation set; empty for the first one and for what is no evaluation.
  Curve(std::string name, std::string set) : name_(std::move(name)), set_(std::move(set)) {}

  const std::string& name() const { return name_; }
  const std::string& set() const { return set_; }
  // Takes a value. Points from `step` on are dropped first: the job went back to a checkpoint.
  // `version` never falls; it tells what a reader of an earlier version has.
  void Add(Clock step, double value, uint64_t version);
  const std::vector<Point>& points() const { return points_; }
  // The last version in which points were dropped or merged: a reader of an earlier one needs all.
  uint64_t changed() const { return changed_; }

 private:
  void Halve(uint64_t version);

  std::string name_, set_;
  std::vector<Point> points_;
  uint64_t changed_ = 0;
  // The values that will make the next point: how many of them there are, and how many it takes.
  uint32_t taken_ = 0, each_ = 1;
  double sum_ = 0;
};

}  // namespace hdps
