// Rows that are to leave their tables by the clock (policy.evict_after_seconds).
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/net/node.h"
#include "common/protocol/manifest.h"

namespace hdps {

struct Job;

// Knows for each table how long a row may stay without an update, and turns that into a step: rows
// hold the step of their last update, and the scheduler notes at some steps how long the job has
// trained.
//
// Invariant: what leaves is a function of the noted times, which are saved with the job.
class RowAges {
 public:
  explicit RowAges(const Job& job);

  bool any() const { return every_ms_ > 0; }  // Some table has a limit.
  // Returns whether a time is to be noted: an eighth of the shortest limit has passed since the
  // last one. Never if no table has a limit.
  bool Due(const std::vector<StepTime>& times, TimeMs trained_ms) const;
  // Notes a step, later than those before, and forgets times that no table needs any more.
  void Note(StepTime now, std::vector<StepTime>* times) const;
  // Returns the last step [tables] whose rows are older than the table's limit; 0: none is.
  std::vector<Clock> LastSteps(const std::vector<StepTime>& times) const;

 private:
  std::vector<TimeMs> limits_ms_;  // [tables]; 0: none.
  TimeMs every_ms_ = 0, longest_ms_ = 0;
};

}  // namespace hdps
