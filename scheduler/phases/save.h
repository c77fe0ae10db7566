// The servers save their rows at the clock at which all workers stand.
#pragma once

#include <optional>
#include <string>

#include "scheduler/phases/pending_save.h"
#include "scheduler/phases/phase.h"

namespace hdps {

// Invariant: it waits while another save is pending. A save ends when rows were copied, except the
// last one of a run, which ends with a checkpoint or fails the job.
class SavePhase : public Phase {
 public:
  using Phase::Phase;

  Next Begin(const Turn& turn) override;
  bool TakesRefusal(const Answer& answer) override;
  Next OnAllAnswered(const Turn& turn) override;
  Next OnTick(const Turn& turn) override;

 private:
  NewCheckpoint WhatWasSaved(const JobAtHand& job) const;
  // Retries the last save of a run after it failed.
  Next TryAgain(const std::string& message, TimeMs now);

  std::string fault_;  // The first error.
  // While the last save of a run fails: when it first did, and when to try again.
  std::optional<TimeMs> failed_since_, again_at_;
  TimeMs wait_ms_ = 0;
};

}  // namespace hdps
