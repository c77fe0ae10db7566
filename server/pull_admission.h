// When a pull may be answered.
#pragma once

#include <algorithm>
#include <compare>
#include <limits>

#include "common/base/ids.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/row_messages.h"

namespace hdps {

// Which step a pull reads for, and the clock at which it may: that step's, or an earlier one for
// rows that are asked for ahead.
struct PullAdmission {
  Clock clock = 0;
  Clock step = 0;

  auto operator<=>(const PullAdmission&) const = default;
};

// Whether who pulls will push gradients of these rows; else it only looks.
inline bool IsTraining(PullMode mode) {
  return mode == PullMode::kTrain || mode == PullMode::kPrefetch || mode == PullMode::kRefresh;
}

// Of asynchronous training: no pull waits for others.
inline constexpr Clock kUnboundedStaleness = std::numeric_limits<Clock>::max();

// How many steps the slowest worker may be behind who reads.
inline Clock StalenessBoundOf(const TrainSpec& train) {
  if (train.mode == Mode::kSsp) return train.staleness_bound;
  return train.mode == Mode::kSync ? 0 : kUnboundedStaleness;
}

// In sync what is read ahead holds whole steps up to a known one: what changes behind it is read
// again at the step's own turn.
inline PullAdmission AdmissionOf(Mode mode, const PullRequest& request) {
  const bool early = mode == Mode::kSync && request.mode == PullMode::kPrefetch;
  return {early ? std::min(request.pushed, request.clock) : request.clock, request.clock};
}

}  // namespace hdps
