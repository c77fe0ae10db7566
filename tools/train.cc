// hdps train: the flags of a run in one process.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/job/job.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/process/command_line.h"
#include "common/process/run_lock.h"
#include "scheduler/members/validate_cluster.h"
#include "scheduler/report/console_output.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/local_cluster.h"
#include "tools/warnings.h"
#include "worker/data/data_preview.h"

DEFINE_uint32(servers, 1, "Servers of the job");
DEFINE_uint32(workers, 1, "Workers of the job");
DEFINE_string(resume, "auto",
              "auto goes on from the newest checkpoint in --out; never begins anew, and "
              "refuses an --out that holds one");
DEFINE_string(trace, "",
              "File for the first steps as events in time, which about://tracing and "
              "ui.perfetto.dev show: who computes, exchanges and waits when");
DEFINE_uint32(trace_steps, 20, "Steps of each worker in --trace");
DEFINE_bool(print_config, false, "Print the job with every default written out, and end");

namespace hdps {
namespace {

void ShowPreview(const DataPreview& preview) {
  for (const std::string& line : preview.lines) std::fprintf(stderr, "data: %s\n", line.c_str());
  PrintWarnings(preview.warnings);
}

Status WriteTrace(FileSystem& files, const TraceEvents& trace) {
  const Status written = WriteFileAtomically(files, FLAGS_trace, trace.Json());
  if (written.ok()) return {};
  return Status(Code::kInvalidArgument,
                "--trace=" + FLAGS_trace + " cannot be written: " + written.message());
}

Status Train() {
  HDPS_ASSIGN_OR_RETURN(const CommonFlags flags, ReadCommonFlags());
  if (flags.job.empty()) {
    return Status(Code::kInvalidArgument, "--job is missing; give the job file, --job=FILE");
  }
  if (flags.out.empty() && !FLAGS_print_config) {
    return Status(Code::kInvalidArgument,
                  "--out is missing; give the folder for results, --out=DIR");
  }
  if (FLAGS_resume != "auto" && FLAGS_resume != "never") {
    return Status(Code::kInvalidArgument, "--resume=" + FLAGS_resume + ": expected auto or never");
  }
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_ASSIGN_OR_RETURN(Job job, LoadJob(*files, flags.job, flags.overrides));
  if (FLAGS_print_config) {
    PrintWarnings(job.warnings);
    std::fputs((PrintJob(job) + "\n").c_str(), stdout);
    return {};
  }
  HDPS_RETURN_IF_ERROR(ValidateCluster(job, FLAGS_servers, FLAGS_workers));
  HDPS_ASSIGN_OR_RETURN(const DataPreview preview, PreviewJobData(*files, job));
  ShowPreview(preview);  // The workers write the same into the log.
  LocalClusterOptions options;
  options.job = std::make_shared<const Job>(std::move(job));
  options.out = std::filesystem::absolute(flags.out).lexically_normal().string();
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> lock,
                        LockRunFolder(*files, "hdps train", options.out));
  options.num_servers = FLAGS_servers;
  options.num_workers = FLAGS_workers;
  options.threads = flags.threads;
  options.resume = FLAGS_resume == "never" ? Resume::kNever : Resume::kAuto;
  if (const Status made = files->MakeDirectories(JoinPath(options.out, "log")); !made.ok()) {
    return Status(Code::kInvalidArgument,
                  "--out=" + flags.out + " cannot be written to: " + made.message());
  }
  HDPS_RETURN_IF_ERROR(
      StartLogging("hdps", JoinPath(JoinPath(options.out, "log"), "train.log"), flags.log));
  options.voice = SpeakOnStderr(/*also_log=*/true);
  InstallStopSignals();
  options.stop = &StopRequested();
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  TraceEvents trace;
  if (!FLAGS_trace.empty()) {
    HDPS_RETURN_IF_ERROR(WriteTrace(*files, trace));  // Found wrong before the run.
    options.trace = &trace;
    options.trace_steps = FLAGS_trace_steps;
  }
  HDPS_ASSIGN_OR_RETURN(const ProcessEnd end, RunLocalCluster(options, *files, *clock));
  if (options.trace != nullptr) HDPS_RETURN_IF_ERROR(WriteTrace(*files, trace));
  return StatusOf(end);
}

}  // namespace

Subcommand TrainCommand() {
  return {"train",
          "train a job: scheduler, servers and workers in this one process",
          "hdps train --job=FILE --out=DIR [--servers=M --workers=N] [flags]",
          {"job", "out", "set", "servers", "workers", "resume", "print_config", "max_bad_rows",
           "threads", "log", "trace", "trace_steps"},
          Train};
}

}  // namespace hdps
