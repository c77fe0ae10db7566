// Implements a run in one process.
#include "tools/training.h"

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "common/base/outside_text.h"
#include "common/job/given_job.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/planning/memory_check.h"
#include "common/planning/placement.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/output_file.h"
#include "common/process/command_line.h"
#include "common/process/run_lock.h"
#include "common/telemetry/member_watch.h"
#include "common/telemetry/published.h"
#include "common/telemetry/trace_file.h"
#include "scheduler/members/validate_cluster.h"
#include "scheduler/picture/job_picture.h"
#include "scheduler/picture/picture_paths.h"
#include "scheduler/plan/init_source.h"
#include "scheduler/report/console_output.h"
#include "scheduler/report/event_records.h"
#include "server/server_memory_limit.h"
#include "tools/export/first_checkpoint.h"
#include "tools/inputs/file_names.h"
#include "tools/local_cluster.h"
#include "worker/data/data_preview.h"

namespace hdps {
namespace {

void ShowPreview(const DataPreview& preview, const ProgressListener& voice) {
  for (const std::string& line : preview.lines) {
    if (voice.notice) voice.notice("data: " + EscapeUntrusted(line, std::string::npos));
  }
  for (const std::string& line : preview.warnings) {
    if (voice.warning) voice.warning(EscapeUntrusted(line, std::string::npos));
  }
}

// Checks the memory of all members together, because they share the process.
Status CheckSharedMemory(FileSystem& files, const Job& job, uint32_t workers) {
  std::vector<MemoryPart> parts = MemoryOfServers(job, job.cluster.shards);
  // The place of rows is known only once there is a model.
  for (MemoryPart& part : MemoryOfWorker(job, /*kept_here=*/job.model.device == "cpu")) {
    part.bytes *= workers;
    parts.push_back(std::move(part));
  }
  return CheckMemory("this process", std::move(parts), MostMemory(files));
}

Status WriteTrace(FileSystem& files, const std::string& path, const RunTrace& trace) {
  const Status written = WriteNamedFile(files, path, trace.Json());
  if (written.ok()) return {};
  return Status(Code::kInvalidArgument,
                "--trace=" + path + " cannot be written: " + written.message());
}

// Errors: kInvalidArgument if the run would write over one of its inputs.
Status RefuseOutputs(FileSystem& files, const TrainingRequest& request, const Job& job) {
  // A text without a file is not found under its name.
  const std::vector<InputFile> inputs = InputsOf(request.job.origin, job);
  HDPS_RETURN_IF_ERROR(RefuseInput(files, "--trace=" + request.trace, request.trace, inputs));
  HDPS_RETURN_IF_ERROR(RefuseSavedStrategy(files, request.job.origin, job));
  for (const char* name : {"summary.json", "metrics.jsonl"}) {
    const std::string path = JoinPath(request.out, name);
    HDPS_RETURN_IF_ERROR(RefuseInput(files, "--out: " + path, path, inputs));
  }
  return {};
}

// Begins the run from `request.init`, unless it goes on from a checkpoint.
Status BeginFromInit(FileSystem& files, const TrainingRequest& request,
                     LocalClusterOptions* options) {
  if (request.init.empty()) {
    if (!request.init_only) return {};
    return {Code::kInvalidArgument, "--init_only needs --init=DIR; give the folder to read"};
  }
  if (!HoldsTensors(files, request.init)) {
    options->init = WholeInitPath(request.init);
    if (!request.init_only) return {};
    return {Code::kInvalidArgument,
            "--init_only is for safetensors files, and --init=" + request.init +
                " holds none; give a checkpoint to hdps-scheduler, --init=" + request.init};
  }
  if (HasCheckpoint(files, options->out)) {
    options->voice.notice("--init=" + request.init + " is ignored: the run in " + options->out +
                          " has a checkpoint");
    return {};
  }
  const std::unique_ptr<Executor> executor = NewTbbExecutor(options->threads);
  std::ostringstream taken;
  HDPS_RETURN_IF_ERROR(
      WriteFirstCheckpoint(files, options->job, request.init, options->out, *executor, taken));
  std::istringstream lines(taken.str());
  for (std::string line; std::getline(lines, line);) options->voice.notice(line);
  // What --resume=never refuses is a checkpoint of before.
  if (options->resume == Resume::kNever) options->resume = Resume::kAuto;
  return {};
}

}  // namespace

Result<PreparedRun> PrepareRun(const TrainingRequest& request, ModelOf model, FileSystem& files) {
  if (request.out.empty()) {
    return Status(Code::kInvalidArgument,
                  "--out is missing; give the folder for results, --out=DIR");
  }
  if (request.tensorboard) HDPS_RETURN_IF_ERROR(CanWriteEvents());
  std::vector<std::string> overrides = request.overrides;
  HDPS_ASSIGN_OR_RETURN(Job job, LoadPlannedJob(files, request.job, &overrides, request.workers));
  if (model == ModelOf::kJob) HDPS_RETURN_IF_ERROR(NeedsLayers(job, "hdps train"));
  job.data.tables = request.tables;
  HDPS_RETURN_IF_ERROR(RefuseOutputs(files, request, job));
  HDPS_RETURN_IF_ERROR(ValidateCluster(job, request.servers, request.workers));
  HDPS_RETURN_IF_ERROR(CheckSharedMemory(files, job, request.workers));
  if (model == ModelOf::kJob || !job.data.train.empty()) {
    HDPS_ASSIGN_OR_RETURN(const DataPreview preview, PreviewJobData(files, job));
    ShowPreview(preview, request.voice);  // The workers write the same into the log.
  }
  PreparedRun run;
  LocalClusterOptions& options = run.options;
  HDPS_ASSIGN_OR_RETURN(options.given_job, GivenJob(request.job, overrides));
  HDPS_ASSIGN_OR_RETURN(
      options.settings,
      OriginsOf(job, request.job, overrides, IsFromEnvironment("set") ? "environment" : "--set"));
  options.resume_command = request.resume_command;
  options.job = std::make_shared<const Job>(std::move(job));
  options.out = std::filesystem::absolute(request.out).lexically_normal().string();
  HDPS_ASSIGN_OR_RETURN(run.lock, LockRunFolder(files, "hdps train", options.out));
  options.num_servers = request.servers;
  options.num_workers = request.workers;
  options.threads = request.threads;
  options.resume = request.resume;
  options.tensorboard = request.tensorboard;
  options.stop = request.stop;
  options.end_now = request.end_now;
  options.after_step = request.after_step;
  const std::string log = JoinPath(options.out, "log");
  if (const Status made = files.MakeDirectories(log); !made.ok()) {
    return Status(Code::kInvalidArgument,
                  "--out=" + request.out + " cannot be written to: " + made.message());
  }
  HDPS_RETURN_IF_ERROR(StartLogging("hdps", JoinPath(log, "train.log"), request.log));
  options.voice = AlsoLogged(request.voice);
  return run;
}

Result<ProcessEnd> RunTraining(const TrainingRequest& request, FileSystem& files) {
  HDPS_ASSIGN_OR_RETURN(PreparedRun run, PrepareRun(request, ModelOf::kJob, files));
  LocalClusterOptions& options = run.options;
  HDPS_RETURN_IF_ERROR(BeginFromInit(files, request, &options));
  if (request.init_only) return ProcessEnd();
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  RunTrace trace;
  if (!request.trace.empty()) {
    // A path that cannot be written is found before the run.
    HDPS_RETURN_IF_ERROR(WriteTrace(files, request.trace, trace));
    options.trace = &trace;
    options.trace_steps = request.trace_steps;
  }
  options.pictures = std::make_shared<Published<JobPicture>>();
  HDPS_ASSIGN_OR_RETURN(
      const std::unique_ptr<HttpServer> server,
      ServeHttp(request.http, PicturePaths(options.pictures, *clock, MembersHere::kAll)));
  if (server == nullptr) options.pictures.reset();  // Nobody looks.
  options.accepted = [&] { TellWhereToWatch(request.http, "hdps train", server.get()); };
  HDPS_ASSIGN_OR_RETURN(ProcessEnd end, RunLocalCluster(options, files, *clock));
  if (options.trace != nullptr) HDPS_RETURN_IF_ERROR(WriteTrace(files, request.trace, trace));
  return end;
}

}  // namespace hdps
