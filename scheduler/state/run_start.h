// What a run finds in its folder and leaves there before anybody comes.
#pragma once

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "scheduler/plan/checkpoint_catalog.h"
#include "scheduler/report/notices.h"
#include "scheduler/scheduler_options.h"
#include "scheduler/state/kept_state.h"

namespace hdps {

// Looks for the checkpoint to go on from and for what another process of the scheduler has left,
// and makes the folders. kInvalidArgument where `options` or the folder do not allow the run; then
// nothing has been written.
Status StartRun(const SchedulerOptions& options, FileSystem& files, CheckpointCatalog& checkpoints,
                KeptState& kept_state, Notices& notices);

// What saves that never ended have left behind goes. Requires: nobody saves.
void RemoveUnfinished(CheckpointCatalog& checkpoints, Notices& notices);

}  // namespace hdps
