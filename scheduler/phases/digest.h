// The servers report the digest and the number of their rows.
#pragma once

#include "scheduler/phases/phase.h"

namespace hdps {

class DigestPhase : public Phase {
 public:
  using Phase::Phase;
  Next Begin(const Turn& turn) override;
  Next OnAllAnswered(const Turn& turn) override;
};

}  // namespace hdps
