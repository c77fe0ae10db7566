// Defines when a pull may be answered.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>

#include "common/base/ids.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/row_messages.h"

namespace hdps {

// The step for which a pull reads, and the clock at which it may be answered: that of the step, or
// an earlier one for prefetched rows. Pulls of one step are answered in the order of its key lists.
struct PullAdmission {
  Clock clock = 0;
  Clock step = 0;
  uint32_t part = 0;

  auto operator<=>(const PullAdmission&) const = default;
};

// Is true for a pull whose worker will push gradients of these rows; other pulls only read.
inline bool IsTraining(PullMode mode) {
  return mode == PullMode::kTrain || mode == PullMode::kPrefetch || mode == PullMode::kRefresh;
}

// The bound of asynchronous training: no pull waits for other workers.
inline constexpr Clock kUnboundedStaleness = std::numeric_limits<Clock>::max();

// Returns how many steps the slowest worker may be behind a reader.
inline Clock StalenessBoundOf(const TrainSpec& train) {
  if (train.mode == Mode::kSsp) return train.staleness_bound;
  return train.mode == Mode::kSync ? 0 : kUnboundedStaleness;
}

// Returns a pull's admission. In sync mode a prefetch reads whole steps up to a known one; rows
// that change later are read again at the step's own turn.
inline PullAdmission AdmissionOf(Mode mode, const PullRequest& request) {
  const bool early = mode == Mode::kSync && request.mode == PullMode::kPrefetch;
  return {early ? std::min(request.pushed, request.clock) : request.clock, request.clock,
          request.part};
}

}  // namespace hdps
