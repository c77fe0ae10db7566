// Saves that are due by the clock (checkpoint.every_seconds, delta_every_seconds).
#pragma once

#include "common/job/spec/checkpoint_spec.h"
#include "common/net/node.h"
#include "scheduler/plan/job_plan.h"

namespace hdps {

// Invariant: what is due depends only on the times that the calls were given. A full save counts as
// one of changes too.
class SaveTimes {
 public:
  explicit SaveTimes(const CheckpointSpec& spec)
      : every_ms_(Ms(spec.every_seconds)), delta_every_ms_(Ms(spec.delta_every_seconds)) {}

  // Begins to count: training begins, goes on after a loss, or has another scheduler.
  void Begin(TimeMs now) { full_ = any_ = now; }
  // Notes that a save begins, done or not: one that fails is due again as late as any.
  void Saves(TimeMs now, bool full) {
    any_ = now;
    if (full) full_ = now;
  }
  WantedSave Due(TimeMs now) const {
    if (every_ms_ > 0 && now - full_ >= every_ms_) return WantedSave::kAll;
    if (delta_every_ms_ > 0 && now - any_ >= delta_every_ms_) return WantedSave::kChanges;
    return WantedSave::kNone;
  }

 private:
  static TimeMs Ms(uint64_t seconds) { return static_cast<TimeMs>(seconds) * 1000; }

  const TimeMs every_ms_, delta_every_ms_;  // 0: never.
  TimeMs full_ = 0, any_ = 0;               // When the last save began, or counting did.
};

}  // namespace hdps
