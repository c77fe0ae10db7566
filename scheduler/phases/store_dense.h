// Workers store the dense layers, or the states of programs that have the model, which they keep,
// at the servers to be saved.
#pragma once

#include <vector>

#include "scheduler/phases/phase.h"

namespace hdps {

struct Job;

// Returns worker 0, or all workers if each has a part of the optimizer's state or a program of its
// own.
std::vector<PeerId> WhoStoresDense(const Job& job, const Membership& members);

class StoreDensePhase : public Phase {
 public:
  using Phase::Phase;
  Next Begin(const Turn& turn) override;
  Next OnAllAnswered(const Turn& turn) override;
};

}  // namespace hdps
