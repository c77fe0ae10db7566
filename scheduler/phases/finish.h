// Writes the run's summary and tells all members that the job is done.
#pragma once

#include "scheduler/phases/phase.h"

namespace hdps {

// Invariant: the summary is written before any member hears of the end. A member that does not
// confirm the end is not waited for forever.
class FinishPhase : public Phase {
 public:
  using Phase::Phase;
  Next Begin(const Turn& turn) override;
  Next OnAllAnswered(const Turn&) override { return Next::Over(); }
  Next OnTick(const Turn& turn) override;

 private:
  void FillSummary(const Turn& turn) const;
  void FillBest(const RunWatches& watches, RunSummary* summary) const;
};

}  // namespace hdps
