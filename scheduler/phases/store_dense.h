// The dense layers that workers keep go to the servers, where they are saved and evaluated from.
#pragma once

#include <vector>

#include "scheduler/phases/phase.h"

namespace hdps {

struct Job;

// Worker 0, or all where each has a part of the optimizer's state: they have that part alone.
std::vector<PeerId> WhoStoresDense(const Job& job, const Membership& members);

class StoreDensePhase : public Phase {
 public:
  using Phase::Phase;
  Next Begin(const Turn& turn) override;
  Next OnAllAnswered(const Turn& turn) override;
};

}  // namespace hdps
