// Defines the flags of hdps train: a run in one process.
#include <gflags/gflags.h>

#include <memory>
#include <string>
#include <utility>

#include "common/base/outside_text.h"
#include "common/base/shell_word.h"
#include "common/job/given_job.h"
#include "common/job/job_spec.h"
#include "common/planning/placement.h"
#include "common/platform/file_system.h"
#include "common/process/command_line.h"
#include "common/process/terminal.h"
#include "scheduler/report/console_output.h"
#include "scheduler/report/event_records.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/training.h"
#include "tools/warnings.h"

DEFINE_uint32(servers, 1, "Number of servers of the job");
DEFINE_uint32(workers, 1, "Number of workers of the job");
DEFINE_string(resume, "auto", hdps::kResumeHelp);
DEFINE_string(trace, "",
              "File for the first steps as events in time, which about://tracing and "
              "ui.perfetto.dev show; empty: none");
DEFINE_uint32(trace_steps, 20, "Number of steps of each worker in --trace");
DEFINE_string(
    init, "",
    "Checkpoint of another job, the --out of its run, or a folder of safetensors files as "
    "hdps export writes them, with whose rows and dense weights a run without a "
    "checkpoint begins; empty: none. A path of a checkpoint that does not exist here and begins "
    "with NAME: is rclone's, and is fetched into --out first");
DEFINE_bool(init_only, false,
            "Write what safetensors files of --init give as the checkpoint of step 0 and end: "
            "daemons with the same --out begin there");
DEFINE_bool(tensorboard, false, hdps::kTensorboardHelp);
DEFINE_bool(print_config, false, "Print the job with every default written out, and end");

namespace hdps {
namespace {

// Returns the command that resumes the run.
std::string ResumeCommand(const std::string& job, const TrainingRequest& request) {
  std::string command = "hdps train --job=" + ShellWord(job) + " --out=" + ShellWord(request.out) +
                        " --servers=" + std::to_string(request.servers) +
                        " --workers=" + std::to_string(request.workers);
  for (const std::string& one : request.overrides) command += " --set=" + ShellWord(one);
  if (!request.init.empty()) command += " --init=" + ShellWord(request.init);
  return command;
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
  TrainingRequest request;
  HDPS_ASSIGN_OR_RETURN(request.resume, ReadResume(FLAGS_resume));
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_ASSIGN_OR_RETURN(request.job, ReadWrittenJob(*files, flags.job));
  if (FLAGS_print_config) {
    HDPS_ASSIGN_OR_RETURN(const Job job,
                          LoadPlannedJob(*files, request.job, &flags.overrides, FLAGS_workers));
    PrintWarnings(job.warnings);
    PrintOutText(EscapeJson(PrintJob(job)) + "\n");
    return {};
  }
  request.overrides = std::move(flags.overrides);
  request.out = flags.out;
  request.servers = FLAGS_servers;
  request.workers = FLAGS_workers;
  request.threads = flags.threads;
  request.log = flags.log;
  request.tensorboard = FLAGS_tensorboard;
  request.trace = FLAGS_trace;
  request.trace_steps = FLAGS_trace_steps;
  request.init = FLAGS_init;
  request.init_only = FLAGS_init_only;
  request.voice = SpeakOnStderr();
  HDPS_ASSIGN_OR_RETURN(request.http, ReadHttpFlags(*files, kHttpOnThisMachine, false));
  request.resume_command = ResumeCommand(flags.job, request);
  InstallStopSignals();
  request.stop = &StopRequested();
  HDPS_ASSIGN_OR_RETURN(const ProcessEnd end, RunTraining(request, *files));
  return StatusOf(end);
}

}  // namespace

Subcommand TrainCommand() {
  return {
      "train",
      "train a job: scheduler, servers and workers in this one process",
      "hdps train --job=FILE --out=DIR [--servers=M --workers=N] [flags]",
      {"job",         "out",       "set",          "servers",      "workers",    "resume",
       "init",        "init_only", "print_config", "max_bad_rows", "threads",    "log",
       "tensorboard", "trace",     "trace_steps",  "http",         "http_names", "http_token_file",
       "http_cert",   "http_key"},
      Train};
}

}  // namespace hdps
