// Rows that are old by the clock leave their tables, between two rounds of training.
#pragma once

#include "scheduler/phases/phase.h"

namespace hdps {

// Invariant: all holders of rows evict the same ones, at the same step.
class EvictPhase : public Phase {
 public:
  using Phase::Phase;
  Next Begin(const Turn& turn) override;
  Next OnAllAnswered(const Turn&) override { return Next::Done(); }
};

}  // namespace hdps
