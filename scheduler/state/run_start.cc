// Prepares the folder of a run at its beginning, and cleans it up.
#include "scheduler/state/run_start.h"

#include <string>

#include "common/base/counted.h"
#include "common/job/job_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/tables/init_match.h"
#include "common/planning/strategy_of_job.h"
#include "common/protocol/checkpoints/rclone.h"
#include "scheduler/members/validate_cluster.h"
#include "scheduler/plan/init_source.h"

namespace hdps {

namespace {

// Tells what the run takes of the checkpoint `options.init`, and returns its folder.
Result<std::string> TakeInit(const SchedulerOptions& options, FileSystem& files,
                             const CheckpointCatalog& checkpoints, bool goes_on, Notices& notices) {
  if (options.init.empty() || goes_on) return std::string();
  if (checkpoints.newest()) {
    notices.Say(RemoveFetchedInit(files, options.out));
    notices.Say("--init=" + options.init + " is ignored: the run in " + options.out +
                " has a checkpoint");
    return std::string();
  }
  std::string path = options.init;
  if (options.programs != nullptr && IsRemote(files, path)) {
    const auto tell = [&notices](const std::string& line) { notices.Say(line); };
    const Result<std::string> fetched =
        FetchInit(files, *options.programs, path, options.out, tell);
    if (!fetched.ok()) {
      return Status(fetched.status().code(), "--init=" + fetched.status().message());
    }
    path = *fetched;
  }
  HDPS_ASSIGN_OR_RETURN(const InitSource source, FindInit(files, path, *options.job));
  notices.Say("begins from " + source.folder + ", step " + std::to_string(source.clock) +
              " of the job '" + source.job_name + "':");
  notices.Say(TakenText(source.match.lines));
  if (source.match.any()) return source.folder;
  return Status(Code::kInvalidArgument,
                "--init=" + options.init +
                    ": nothing of it fits this job; expected tables of the same names and dims, or "
                    "dense tensors of the same names and shapes");
}

}  // namespace

Result<std::string> StartRun(const SchedulerOptions& options, FileSystem& files,
                             CheckpointCatalog& checkpoints, KeptState& kept_state,
                             Notices& notices) {
  const Job& job = *options.job;
  const std::string folder = JoinPath(options.out, "checkpoint");
  const bool anew = options.resume == Resume::kNever;
  if (anew && checkpoints.HasAny()) {
    return Status(Code::kInvalidArgument,
                  "--resume=never, but " + folder +
                      " holds checkpoints; give the job another --out, or remove them");
  }
  HDPS_RETURN_IF_ERROR(kept_state.CheckReign());
  HDPS_RETURN_IF_ERROR(checkpoints.FindStart().status());
  if (const Status found = anew ? Status() : kept_state.Find(job); !found.ok()) {
    notices.Say("the job goes on from its newest checkpoint, if there is one: " + found.message());
  }
  HDPS_ASSIGN_OR_RETURN(std::string init,
                        TakeInit(options, files, checkpoints, kept_state.found(), notices));
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
  if (mode == ParallelMode::kData || mode == ParallelMode::kStandAlone) return init;
  HDPS_ASSIGN_OR_RETURN(const Strategy strategy, StrategyOf(job, options.num_workers));
  HDPS_RETURN_IF_ERROR(SaveStrategy(files, job, strategy));
  notices.Say(StrategyLine(job, strategy));
  return init;
}

void RemoveUnfinished(CheckpointCatalog& checkpoints, Notices& notices) {
  const Result<size_t> removed = checkpoints.RemoveUnfinished();
  if (!removed.ok()) return notices.Say(removed.status().message());
  if (*removed == 0) return;
  notices.Say("removed " + Counted(*removed, "unfinished checkpoint") +
              " that saves have left behind");
}

}  // namespace hdps
