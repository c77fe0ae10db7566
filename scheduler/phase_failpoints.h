// A failpoint at the beginning of each phase of a job.
#pragma once

#include "common/platform/failpoint.h"
#include "scheduler/job_record.h"

namespace hdps {

inline void PassFailpointOf(JobPhase phase) {
  switch (phase) {
    case JobPhase::kSuspended:
    case JobPhase::kEvict:  // Comes when the clock says so, not in every run of a job.
    case JobPhase::kOver:
      return;
    case JobPhase::kQuiet:
      HDPS_FAILPOINT("scheduler.phase.quiet");
      return;
    case JobPhase::kMoveDense:
      HDPS_FAILPOINT("scheduler.phase.move_dense");
      return;
    case JobPhase::kMoveSave:
      HDPS_FAILPOINT("scheduler.phase.move_save");
      return;
    case JobPhase::kMoveServers:
      HDPS_FAILPOINT("scheduler.phase.move_servers");
      return;
    case JobPhase::kMoveWorkers:
      HDPS_FAILPOINT("scheduler.phase.move_workers");
      return;
    case JobPhase::kLoadServers:
      HDPS_FAILPOINT("scheduler.phase.load_servers");
      return;
    case JobPhase::kLoadWorkers:
      HDPS_FAILPOINT("scheduler.phase.load_workers");
      return;
    case JobPhase::kInitDense:
      HDPS_FAILPOINT("scheduler.phase.init_dense");
      return;
    case JobPhase::kTrain:
      HDPS_FAILPOINT("scheduler.phase.train");
      return;
    case JobPhase::kStoreDense:
      HDPS_FAILPOINT("scheduler.phase.store_dense");
      return;
    case JobPhase::kEvaluate:
      HDPS_FAILPOINT("scheduler.phase.evaluate");
      return;
    case JobPhase::kDigest:
      HDPS_FAILPOINT("scheduler.phase.digest");
      return;
    case JobPhase::kSave:
      HDPS_FAILPOINT("scheduler.phase.save");
      return;
    case JobPhase::kFinish:
      HDPS_FAILPOINT("scheduler.phase.finish");
      return;
  }
}

}  // namespace hdps
