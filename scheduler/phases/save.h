// The servers save their rows at the clock at which all workers stand.
#pragma once

#include <optional>
#include <string>

#include "scheduler/phases/pending_save.h"
#include "scheduler/phases/phase.h"

namespace hdps {

// Invariant: it waits while another checkpoint is on its way. All saves but the last of a run end
// when rows are taken; the last ends with a checkpoint, or the job fails.
class SavePhase : public Phase {
 public:
  using Phase::Phase;

  Next Begin(const Turn& turn) override;
  bool TakesRefusal(const Answer& answer) override;
  Next OnAllAnswered(const Turn& turn) override;
  Next OnTick(const Turn& turn) override;

 private:
  NewCheckpoint WhatWasSaved(const JobAtHand& job) const;
  // The last save of a run could not be made.
  Next TryAgain(const std::string& message, TimeMs now);

  std::string fault_;                              // The first error.
  std::optional<TimeMs> failed_since_, again_at_;  // Of the last save, while it fails.
  TimeMs wait_ms_ = 0;
};

}  // namespace hdps
