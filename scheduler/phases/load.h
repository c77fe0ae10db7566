// Everybody loads the checkpoint that the job goes on from, or begins anew: servers, then workers.
#pragma once

#include <optional>
#include <string>

#include "scheduler/phases/phase.h"

namespace hdps {

// Invariant: workers are told only when every server has read its rows; a checkpoint that a server
// refuses is given up for the one before it.
class LoadPhase : public Phase {
 public:
  // `start`: none begins at step 0.
  LoadPhase(const PhaseParts& parts, std::optional<FoundCheckpoint> start)
      : Phase(parts), start_(std::move(start)) {}

  Next Begin(const Turn& turn) override;
  bool TakesRefusal(const Answer& answer) override;
  Next OnAllAnswered(const Turn& turn) override;

 private:
  Next LoadOlder(JobAtHand& job);
  // Of steps_again: what workers had trained, and nobody had heard of; and what lies between a
  // checkpoint that could not be loaded and the one before it.
  void CountLost(JobAtHand& job) const;
  void CountOlder(JobAtHand& job, const Manifest& older) const;
  void WarnOfOtherData(const JobRecord& record) const;
  void TellResumed(JobAtHand& job) const;

  std::optional<FoundCheckpoint> start_;
  bool at_workers_ = false;
  std::string fault_;  // The first error.
};

}  // namespace hdps
