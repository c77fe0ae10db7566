// Worker 0 initializes the dense layers, at step 0.
#pragma once

#include "scheduler/phases/phase.h"

namespace hdps {

class InitDensePhase : public Phase {
 public:
  using Phase::Phase;
  Next Begin(const Turn& turn) override;
  Next OnAllAnswered(const Turn& turn) override;
};

}  // namespace hdps
