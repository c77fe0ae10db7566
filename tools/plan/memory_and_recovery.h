// What a planned cluster holds in memory and in a checkpoint, and what a lost server costs it.
#pragma once

#include "tools/plan/cost_model.h"

namespace hdps {

// Requires: the unique share is known. Where one worker asks for `rows` rows in a step, which are
// `floats` floats with the dense ones.
void AddMemory(const PlanQuestion& question, const MachineConstants& constants, double rows,
               double floats, PlanAnswer* answer);
// Requires: memory and the time of a step are known.
void AddRecovery(const PlanQuestion& question, const MachineConstants& constants,
                 PlanAnswer* answer);

}  // namespace hdps
