// Prepares the folder of a run before any member comes.
#pragma once

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "scheduler/plan/checkpoint_catalog.h"
#include "scheduler/report/notices.h"
#include "scheduler/scheduler_options.h"
#include "scheduler/state/kept_state.h"

namespace hdps {

// Looks for the checkpoint to resume from and for the state of a former scheduler process, and
// makes the folders. Returns the checkpoint of another job that a new run begins with; empty if
// there is none. kInvalidArgument if `options` or the folder do not allow the run; nothing has been
// written then.
Result<std::string> StartRun(const SchedulerOptions& options, FileSystem& files,
                             CheckpointCatalog& checkpoints, KeptState& kept_state,
                             Notices& notices);

// Removes what unfinished saves have left. Requires: no save is running.
void RemoveUnfinished(CheckpointCatalog& checkpoints, Notices& notices);

}  // namespace hdps
