// How fast a job trains, as it is told while it goes on.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "common/net/node.h"

namespace hdps {

// Examples per second of the last seconds of training. What is known of the examples lags behind by
// up to a heartbeat and becomes exact at the end of an epoch, so that the time between two looks
// may be next to none where the examples between them are many: a speed is taken over kOverMs of
// training, or over all of it as long as there is less, and over no less than kLeastMs.
//
// Invariant: at most the first point is kOverMs or more of training before the last one.
class TrainingSpeed {
 public:
  static constexpr TimeMs kOverMs = 2000, kLeastMs = 500;

  // What was before counts no more.
  void Begin(TimeMs now, uint64_t examples);
  // Training goes on; it has stood since it was last looked at.
  void GoOn(TimeMs now);
  // None as long as there were less than kLeastMs of training. `examples`: of all training since
  // Begin().
  std::optional<double> At(TimeMs now, uint64_t examples);

 private:
  struct Point {
    TimeMs at = 0;
    uint64_t examples = 0;
  };
  std::deque<Point> points_ = {{}};  // By time.
};

}  // namespace hdps
