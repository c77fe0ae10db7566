// Predicts the memory and checkpoints of a cluster, and what the loss of a server costs.
#pragma once

#include "tools/plan/cost_model.h"

namespace hdps {

// Adds the memory of each member. One worker asks for `rows` rows in a step; `floats` counts their
// floats and the dense ones. Requires: the unique share is known.
void AddMemory(const PlanQuestion& question, const MachineConstants& constants, double rows,
               double floats, PlanAnswer* answer);
// Adds the time of a checkpoint and of a recovery. Requires: memory and the time of a step are
// known.
void AddRecovery(const PlanQuestion& question, const MachineConstants& constants,
                 PlanAnswer* answer);

}  // namespace hdps
