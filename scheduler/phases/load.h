// All members load the checkpoint or begin anew: first the servers, then the workers.
#pragma once

#include <optional>
#include <string>

#include "scheduler/phases/phase.h"

namespace hdps {

// Invariant: workers are told only when every server has its rows. If a server refuses a
// checkpoint, the one before it is used.
class LoadPhase : public Phase {
 public:
  // `start`: the checkpoint to load; without one the job begins at step 0, and servers take what
  // fits of the record's `init`.
  LoadPhase(const PhaseParts& parts, std::optional<FoundCheckpoint> start)
      : Phase(parts), start_(std::move(start)) {}

  Next Begin(const Turn& turn) override;
  Next OnAnswer(const Answer& answer, const Turn& turn) override;
  bool TakesRefusal(const Answer& answer) override;
  Next OnAllAnswered(const Turn& turn) override;

 private:
  Next LoadOlder(JobAtHand& job);
  // Counts steps up to `clock` into steps_again that no heartbeat has reported.
  void CountLost(JobAtHand& job, Clock clock) const;
  // Counts into steps_again the steps between a checkpoint that could not be loaded and the one
  // before it.
  void CountOlder(JobAtHand& job, const Manifest& older) const;
  void WarnOfOtherData(const JobRecord& record) const;
  void TellResumed(JobAtHand& job) const;

  std::optional<FoundCheckpoint> start_;
  bool at_workers_ = false;
  std::string fault_;     // The first error.
  Clock refused_at_ = 0;  // The highest clock of a server that could not load.
};

}  // namespace hdps
