// Implements hdps train: a run in one process.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/outside_text.h"
#include "common/job/given_job.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/planning/memory_check.h"
#include "common/planning/placement.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/output_file.h"
#include "common/process/command_line.h"
#include "common/process/run_lock.h"
#include "common/process/terminal.h"
#include "scheduler/members/validate_cluster.h"
#include "scheduler/report/console_output.h"
#include "server/server_memory_limit.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/export/first_checkpoint.h"
#include "tools/inputs/file_names.h"
#include "tools/local_cluster.h"
#include "tools/warnings.h"
#include "worker/data/data_preview.h"

DEFINE_uint32(servers, 1, "Number of servers of the job");
DEFINE_uint32(workers, 1, "Number of workers of the job");
DEFINE_string(resume, "auto", hdps::kResumeHelp);
DEFINE_string(trace, "",
              "File for the first steps as events in time, which about://tracing and "
              "ui.perfetto.dev show; empty: none");
DEFINE_uint32(trace_steps, 20, "Number of steps of each worker in --trace");
DEFINE_string(init, "",
              "Folder of safetensors files, as hdps export writes them, whose tables and layers a "
              "run without a checkpoint begins with; empty: none");
DEFINE_bool(init_only, false,
            "Write what --init gives as the checkpoint of step 0 and end: daemons with the same "
            "--out begin there");
DEFINE_bool(print_config, false, "Print the job with every default written out, and end");

namespace hdps {
namespace {

void ShowPreview(const DataPreview& preview) {
  for (const std::string& line : preview.lines)
    PrintError("data: %s\n", EscapeUntrusted(line, std::string::npos).c_str());
  PrintWarnings(preview.warnings);
}

// Checks the memory of all members together, because they share the process.
Status CheckSharedMemory(FileSystem& files, const Job& job) {
  std::vector<MemoryPart> parts = MemoryOfServers(job, job.cluster.shards);
  // The place of rows is known only once there is a model.
  for (MemoryPart& part : MemoryOfWorker(job, /*kept_here=*/job.model.device == "cpu")) {
    part.bytes *= FLAGS_workers;
    parts.push_back(std::move(part));
  }
  return CheckMemory("this process", std::move(parts), MostMemory(files));
}

Status WriteTrace(FileSystem& files, const TraceEvents& trace) {
  const Status written = WriteNamedFile(files, FLAGS_trace, trace.Json());
  if (written.ok()) return {};
  return Status(Code::kInvalidArgument,
                "--trace=" + FLAGS_trace + " cannot be written: " + written.message());
}

// Begins the run from --init, unless it goes on from a checkpoint. Returns true if --init was used.
Result<bool> BeginFromInit(FileSystem& files, const LocalClusterOptions& options) {
  if (FLAGS_init.empty()) {
    if (!FLAGS_init_only) return false;
    return Status(Code::kInvalidArgument, "--init_only needs --init=DIR; give the folder to read");
  }
  if (HasCheckpoint(files, options.out)) {
    PrintError("--init=%s is ignored: the run in %s has a checkpoint\n", FLAGS_init.c_str(),
               options.out.c_str());
    return false;
  }
  const std::unique_ptr<Executor> executor = NewTbbExecutor(options.threads);
  PrintedStream to;
  HDPS_RETURN_IF_ERROR(
      WriteFirstCheckpoint(files, options.job, FLAGS_init, options.out, *executor, to));
  return true;
}

Status Train() {
  HDPS_ASSIGN_OR_RETURN(CommonFlags flags, ReadCommonFlags());
  if (flags.job.empty()) {
    return Status(Code::kInvalidArgument, "--job is missing; give the job file, --job=FILE");
  }
  if (flags.out.empty() && !FLAGS_print_config) {
    return Status(Code::kInvalidArgument,
                  "--out is missing; give the folder for results, --out=DIR");
  }
  HDPS_ASSIGN_OR_RETURN(const Resume resume, ReadResume(FLAGS_resume));
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_ASSIGN_OR_RETURN(Job job,
                        LoadPlannedJob(*files, flags.job, &flags.overrides, FLAGS_workers));
  if (FLAGS_print_config) {
    PrintWarnings(job.warnings);
    PrintOutText(EscapeJson(PrintJob(job)) + "\n");
    return {};
  }
  HDPS_RETURN_IF_ERROR(
      RefuseInput(*files, "--trace=" + FLAGS_trace, FLAGS_trace, InputsOf(flags.job, job)));
  HDPS_RETURN_IF_ERROR(RefuseSavedStrategy(*files, flags.job, job));
  for (const char* name : {"summary.json", "metrics.jsonl"}) {
    const std::string path = JoinPath(flags.out, name);
    HDPS_RETURN_IF_ERROR(RefuseInput(*files, "--out: " + path, path, InputsOf(flags.job, job)));
  }
  HDPS_RETURN_IF_ERROR(ValidateCluster(job, FLAGS_servers, FLAGS_workers));
  HDPS_RETURN_IF_ERROR(CheckSharedMemory(*files, job));
  HDPS_ASSIGN_OR_RETURN(const DataPreview preview, PreviewJobData(*files, job));
  ShowPreview(preview);  // The workers write the same into the log.
  LocalClusterOptions options;
  HDPS_ASSIGN_OR_RETURN(options.given_job, GivenJob(*files, flags.job, flags.overrides));
  options.job = std::make_shared<const Job>(std::move(job));
  options.out = std::filesystem::absolute(flags.out).lexically_normal().string();
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> lock,
                        LockRunFolder(*files, "hdps train", options.out));
  options.num_servers = FLAGS_servers;
  options.num_workers = FLAGS_workers;
  options.threads = flags.threads;
  options.resume = resume;
  if (const Status made = files->MakeDirectories(JoinPath(options.out, "log")); !made.ok()) {
    return Status(Code::kInvalidArgument,
                  "--out=" + flags.out + " cannot be written to: " + made.message());
  }
  HDPS_RETURN_IF_ERROR(
      StartLogging("hdps", JoinPath(JoinPath(options.out, "log"), "train.log"), flags.log));
  HDPS_ASSIGN_OR_RETURN(const bool begun, BeginFromInit(*files, options));
  if (FLAGS_init_only) return {};
  // What --resume=never refuses is a checkpoint of before.
  if (begun && options.resume == Resume::kNever) options.resume = Resume::kAuto;
  options.voice = SpeakOnStderr(/*also_log=*/true);
  InstallStopSignals();
  options.stop = &StopRequested();
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  TraceEvents trace;
  if (!FLAGS_trace.empty()) {
    HDPS_RETURN_IF_ERROR(WriteTrace(*files, trace));  // The job was found wrong before the run.
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
          {"job", "out", "set", "servers", "workers", "resume", "init", "init_only", "print_config",
           "max_bad_rows", "threads", "log", "trace", "trace_steps"},
          Train};
}

}  // namespace hdps
