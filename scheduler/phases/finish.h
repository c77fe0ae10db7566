// The run's summary is written, and everybody is told that the job is done.
#pragma once

#include "scheduler/phases/phase.h"

namespace hdps {

// Invariant: the summary is there before anybody hears of the end; who does not confirm it is not
// waited for forever.
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
