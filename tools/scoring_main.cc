// hdps evaluate and hdps predict: their flags.
#include <iostream>
#include <memory>

#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/process/command_line.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/scoring.h"

namespace hdps {
namespace {

template <auto kRun>
Status Score() {
  HDPS_ASSIGN_OR_RETURN(const CommonFlags flags, ReadCommonFlags());
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
          {"checkpoint", "which", "data", "eval_set", "job", "set", "max_bad_rows", "threads"},
          Score<RunEvaluate>};
}

Subcommand PredictCommand() {
  return {
      "predict",
      "one probability a line for every row of files",
      "hdps predict --checkpoint=DIR [--job=FILE] [--data=FILE,...] [--out=FILE]",
      {"checkpoint", "which", "data", "eval_set", "job", "set", "max_bad_rows", "threads", "out"},
      Score<RunPredict>};
}

}  // namespace hdps
