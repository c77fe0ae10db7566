// hdps evaluate and hdps predict: their flags.
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/process/command_line.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/scoring.h"

namespace hdps {
namespace {

using RunScoring = Status (*)(const ScoringOptions&, FileSystem&, Executor&, std::ostream&);

Status ReadFlagsAndRun(const char* program, RunScoring run) {
  HDPS_ASSIGN_OR_RETURN(CommonFlags flags, ReadCommonFlags());
  HDPS_RETURN_IF_ERROR(StartLogging(program, "", "warning"));
  ScoringOptions options;
  options.job = std::move(flags.job);
  options.overrides = std::move(flags.overrides);
  options.checkpoint = std::move(flags.checkpoint);
  options.data = std::move(flags.data);
  options.out = std::move(flags.out);
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const std::unique_ptr<Executor> executor = NewTbbExecutor(flags.threads);
  return run(options, *files, *executor, std::cout);
}

int ScoringMain(const char* program, const char* usage, std::span<const std::string_view> flags,
                RunScoring run, int argc, char** argv) {
  Status status = ParseCommandLine(usage, &argc, &argv, nullptr, flags);
  if (status.ok()) status = ReadFlagsAndRun(program, run);
  std::cout.flush();
  return status.ok() ? kExitDone : ReportAndExitStatus(program, status);
}

}  // namespace

int EvaluateMain(int argc, char** argv) {
  constexpr std::string_view kFlags[] = {"checkpoint", "data",         "job",
                                         "set",        "max_bad_rows", "threads"};
  return ScoringMain("hdps evaluate",
                     "hdps evaluate: AUC and logloss of a checkpoint\n"
                     "usage: hdps evaluate --checkpoint=DIR [--job=FILE] [--data=FILE,...]",
                     kFlags, RunEvaluate, argc, argv);
}

int PredictMain(int argc, char** argv) {
  constexpr std::string_view kFlags[] = {"checkpoint",   "data",    "job", "set",
                                         "max_bad_rows", "threads", "out"};
  return ScoringMain("hdps predict",
                     "hdps predict: one probability a line for every row\n"
                     "usage: hdps predict --checkpoint=DIR [--job=FILE] [--data=FILE,...] "
                     "[--out=FILE]",
                     kFlags, RunPredict, argc, argv);
}

}  // namespace hdps
