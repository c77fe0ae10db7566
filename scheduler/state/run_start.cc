// Prepares the folder of a run at its beginning, and cleans it up.
#include "scheduler/state/run_start.h"

#include <string>

#include "common/base/counted.h"
#include "common/job/job_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/planning/strategy_of_job.h"
#include "scheduler/members/validate_cluster.h"

namespace hdps {

Status StartRun(const SchedulerOptions& options, FileSystem& files, CheckpointCatalog& checkpoints,
                KeptState& kept_state, Notices& notices) {
  const Job& job = *options.job;
  const std::string folder = JoinPath(options.out, "checkpoint");
  const bool anew = options.resume == Resume::kNever;
  if (anew && checkpoints.HasAny()) {
    return Status(Code::kInvalidArgument,
                  "--resume=never, but " + folder +
                      " holds checkpoints; give the job another --out, or remove them");
  }
  HDPS_RETURN_IF_ERROR(checkpoints.FindStart().status());
  if (const Status found = anew ? Status() : kept_state.Find(job); !found.ok()) {
    notices.Say("the job goes on from its newest checkpoint, if there is one: " + found.message());
  }
  for (const std::string& line : WarningsOf(job, options.num_workers)) notices.Warn(line);
  for (const std::string& refused : checkpoints.refused()) {
    notices.Say("refused the checkpoint " + refused);
  }
  notices.Say(checkpoints.TakeNotices());
  if (const Status made = files.MakeDirectories(folder); !made.ok()) {
    return Status(Code::kInvalidArgument,
                  "--out=" + options.out + " cannot be written to: " + made.message());
  }
  // Members that went on meanwhile may be saving.
  if (!kept_state.found()) RemoveUnfinished(checkpoints, notices);
  const ParallelMode mode = job.parallel.parallel_mode;
  if (mode == ParallelMode::kData || mode == ParallelMode::kStandAlone) return {};
  HDPS_ASSIGN_OR_RETURN(const Strategy strategy, StrategyOf(job, options.num_workers));
  HDPS_RETURN_IF_ERROR(SaveStrategy(files, job, strategy));
  notices.Say(StrategyLine(job, strategy));
  return {};
}

void RemoveUnfinished(CheckpointCatalog& checkpoints, Notices& notices) {
  const Result<size_t> removed = checkpoints.RemoveUnfinished();
  if (!removed.ok()) return notices.Say(removed.status().message());
  if (*removed == 0) return;
  notices.Say("removed " + Counted(*removed, "unfinished checkpoint") +
              " that saves have left behind");
}

}  // namespace hdps
