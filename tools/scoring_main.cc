// hdps evaluate and hdps predict: their flags.
#include <gflags/gflags.h>

#include <iostream>
#include <memory>
#include <string>

#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/process/command_line.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/scoring.h"

DEFINE_bool(dry_run, false, "Say who would hold what of the model, and score nothing");
DECLARE_uint32(workers);

namespace hdps {
namespace {

constexpr uint32_t kWorkersMax = 256;

template <auto kRun>
Status Score() {
  HDPS_ASSIGN_OR_RETURN(CommonFlags flags, ReadCommonFlags());
  if (FLAGS_workers < 1 || FLAGS_workers > kWorkersMax) {
    return {Code::kInvalidArgument, "--workers=" + std::to_string(FLAGS_workers) +
                                        " is out of range; give 1 to " +
                                        std::to_string(kWorkersMax)};
  }
  flags.workers = FLAGS_workers;
  flags.dry_run = FLAGS_dry_run;
  HDPS_RETURN_IF_ERROR(StartLogging("hdps", "", "warning"));
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const std::unique_ptr<Executor> executor = NewTbbExecutor(flags.threads);
  return kRun(flags, *files, *executor, std::cout);
}

}  // namespace

Subcommand EvaluateCommand() {
  return {"evaluate",
          "AUC and logloss of a checkpoint over files",
          "hdps evaluate --checkpoint=DIR [--job=FILE] [--data=FILE,...]",
          {"checkpoint", "which", "data", "eval_set", "job", "set", "max_bad_rows", "threads",
           "workers", "dry_run"},
          Score<RunEvaluate>};
}

Subcommand PredictCommand() {
  return {"predict",
          "one probability a line for every row of files",
          "hdps predict --checkpoint=DIR [--job=FILE] [--data=FILE,...] [--out=FILE]",
          {"checkpoint", "which", "data", "eval_set", "job", "set", "max_bad_rows", "threads",
           "out", "workers", "dry_run"},
          Score<RunPredict>};
}

}  // namespace hdps
