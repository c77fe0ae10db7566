// Measures how fast a job trains, for reports while it runs.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "common/net/node.h"

namespace hdps {

// Measures examples per second over the last seconds of training. The known number of examples lags
// by up to a heartbeat and becomes exact at the end of an epoch, so many examples may appear
// between two observations that are close in time. The speed is therefore taken over kOverMs of
// training, or all of it while there is less, and over no less than kLeastMs.
//
// Invariant: at most the first point is kOverMs or more of training before the last one.
class TrainingSpeed {
 public:
  static constexpr TimeMs kOverMs = 2000, kLeastMs = 500;

  // Forgets what was before.
  void Begin(TimeMs now, uint64_t examples);
  // Notes that training goes on after a pause since the last observation.
  void GoOn(TimeMs now);
  // Returns the speed; none after less than kLeastMs of training. `examples`: trained since
  // Begin().
  std::optional<double> At(TimeMs now, uint64_t examples);

 private:
  struct Point {
    TimeMs at = 0;
    uint64_t examples = 0;
  };
  std::deque<Point> points_ = {{}};  // In order of time.
};

}  // namespace hdps
