// Measures how fast each member works, and which ones hold the others up.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "common/net/node.h"
#include "common/telemetry/figure_layout.h"

namespace hdps {

// The parts of a step on a worker's compute thread, in the order of StepTimes: labels of
// hdps_worker_stage_seconds_total. Reading and what is hidden go on beside them.
std::span<const size_t> ComputeStages();

// The recent readings of one member.
//
// Invariant: holds few readings: one a second, and none in which no step was finished.
class MemberPace {
 public:
  explicit MemberPace(const FigureLayout& layout) : layout_(layout) {}

  void Take(TimeMs now, const std::shared_ptr<const Readings>& readings);

  // Returns the seconds of each of ComputeStages() in the last 10 s of finished steps, and then
  // what is left of their time; empty without a step. Only of workers.
  std::vector<double> StageSeconds() const;
  // Returns the seconds of one step of a worker without what it waits for, or of one pull of a
  // server, in the last seconds; 0 if there was none.
  double OwnSeconds() const;
  // Returns the steps of a worker, or the pulls of a server, since it began.
  uint64_t count() const;

  // Judges against the median of the members of this role; called after each Take() of all.
  void Judge(double median);
  double ratio() const { return ratio_; }  // OwnSeconds() / median; 0: not known.
  // Steps in a row, or pulls, in which it was over kSlowRatio.
  uint64_t slow_count() const { return slow_count_; }
  bool is_straggler() const { return slow_count_ >= kSlowSteps; }

  static constexpr double kSlowRatio = 1.5;
  static constexpr uint64_t kSlowSteps = 20;

 private:
  struct At {
    TimeMs at = 0;
    std::shared_ptr<const Readings> readings;
  };
  bool Matches(const Readings& readings) const { return readings.size() == layout_.size(); }
  uint64_t CountIn(const Readings& readings) const;
  double OwnTotal(const Readings& readings) const;

  const FigureLayout& layout_;
  std::deque<At> kept_;  // In order of time; the counts grow.
  uint64_t judged_count_ = 0, slow_count_ = 0;
  double ratio_ = 0;
};

// Returns the middle value, of two the smaller one, so that one slow member of two is noticed; 0
// without values. Values that are 0 are left out.
double LowerMedian(std::vector<double> values);

}  // namespace hdps
