// hdps-scheduler: gathers the members of one job and leads them through it.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "common/base/counted.h"
#include "common/base/outside_text.h"
#include "common/base/shell_word.h"
#include "common/job/given_job.h"
#include "common/job/job_spec.h"
#include "common/net/node_loop.h"
#include "common/net/transport.h"
#include "common/planning/placement.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/output_file.h"
#include "common/platform/process_watch.h"
#include "common/platform/programs/program.h"
#include "common/process/daemon.h"
#include "common/process/http_flags.h"
#include "common/process/run_lock.h"
#include "common/process/terminal.h"
#include "common/telemetry/published.h"
#include "scheduler/members/validate_cluster.h"
#include "scheduler/picture/job_picture.h"
#include "scheduler/picture/picture_paths.h"
#include "scheduler/plan/init_source.h"
#include "scheduler/report/console_output.h"
#include "scheduler/report/event_records.h"
#include "scheduler/scheduler_node.h"

DEFINE_string(out, "",
              "Folder for summary.json, metrics.jsonl and checkpoint/, which servers on other "
              "machines must see under the same path");
DEFINE_string(listen, "tcp://127.0.0.1:8118",
              "Address of the scheduler: tcp://HOST:PORT, where port 0 picks one, or ipc://PATH");
DEFINE_uint32(servers, 1, "Number of servers of the job");
DEFINE_uint32(workers, 1, "Number of workers of the job");
DEFINE_string(resume, "auto", hdps::kResumeHelp);
DEFINE_string(init, "", hdps::kInitHelp);
DEFINE_string(address_file, "",
              "File that gets the address once the scheduler listens, for scripts; empty: none");
DEFINE_bool(same_run, false,
            "Continue a run that was started before, in which an earlier request to stop still "
            "holds; without it a new run begins and forgets that request");
DEFINE_bool(tensorboard, false, hdps::kTensorboardHelp);
DEFINE_bool(print_config, false, "Print the job with every default written out, and end");

namespace hdps {
namespace {

constexpr char kProgram[] = "hdps-scheduler";
constexpr char kUsage[] =
    "hdps-scheduler: leads the servers and workers of one job\n"
    "usage: hdps-scheduler --job=FILE --out=DIR [--servers=M --workers=N] [flags]";
constexpr std::string_view kFlags[] = {
    "out",        "listen",          "servers",   "workers",      "resume",
    "init",       "address_file",    "same_run",  "print_config", "http",
    "http_names", "http_token_file", "http_cert", "http_key",     "tensorboard"};

// Returns the command that resumes the run.
std::string ResumeCommand(const DaemonFlags& flags) {
  std::string command =
      std::string(kProgram) + " --job=" + ShellWord(flags.job) + " --out=" + ShellWord(FLAGS_out) +
      " --servers=" + std::to_string(FLAGS_servers) + " --workers=" + std::to_string(FLAGS_workers);
  for (const std::string& one : flags.overrides) command += " --set=" + ShellWord(one);
  if (!FLAGS_init.empty()) command += " --init=" + ShellWord(FLAGS_init);
  return command;
}

// Fills what pictures tell of the start.
Status FillStart(const DaemonFlags& flags, const WrittenJob& text, MonotonicClock& clock,
                 SchedulerOptions* options) {
  HDPS_ASSIGN_OR_RETURN(options->settings,
                        OriginsOf(*options->job, text, flags.overrides,
                                  IsFromEnvironment("set") ? "environment" : "--set"));
  options->resume_command = ResumeCommand(flags);
  options->started_at = clock.NowMs();
  options->unix_ms_at_zero = UnixMs() - options->started_at;
  return {};
}

Status CheckFlags(const DaemonFlags& flags) {
  if (FLAGS_out.empty() && !FLAGS_print_config) {
    return {Code::kInvalidArgument, "--out is missing; give the folder for results, --out=DIR"};
  }
  HDPS_RETURN_IF_ERROR(ReadResume(FLAGS_resume).status());
  if (FLAGS_tensorboard) HDPS_RETURN_IF_ERROR(CanWriteEvents());
  return CheckAddress(FLAGS_listen, flags.connections.may_leave());
}

Result<ProcessEnd> Run() {
  HDPS_ASSIGN_OR_RETURN(DaemonFlags flags, ReadDaemonFlags(KeyRole::kScheduler));
  HDPS_RETURN_IF_ERROR(CheckFlags(flags));
  const std::unique_ptr<FileSystem> files = flags.faults.Around(NewPosixFileSystem());
  HDPS_ASSIGN_OR_RETURN(const HttpFlags http,
                        ReadHttpFlags(*files, kHttpOnThisMachine, flags.connections.insecure));
  HDPS_ASSIGN_OR_RETURN(const WrittenJob text, ReadWrittenJob(*files, flags.job));
  HDPS_ASSIGN_OR_RETURN(Job job, LoadPlannedJob(*files, text, &flags.overrides, FLAGS_workers,
                                                DataFiles::kNotNeeded));
  if (FLAGS_print_config) {
    PrintOutText(EscapeJson(PrintJob(job)) + "\n");
    return Status(Code::kCancelled, "the job was to be printed");
  }
  const InputFile read = {"the job file", flags.job};
  HDPS_RETURN_IF_ERROR(
      RefuseInput(*files, "--address_file=" + FLAGS_address_file, FLAGS_address_file, {&read, 1}));
  HDPS_RETURN_IF_ERROR(ValidateCluster(job, FLAGS_servers, FLAGS_workers));
  // Servers get this path, and each has its own working folder.
  const std::string out = std::filesystem::absolute(FLAGS_out).lexically_normal().string();
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> lock, LockRunFolder(*files, kProgram, out));
  TransportOptions connections = flags.connections.Options(kSchedulerPeer);
  connections.part_bytes_max = kEnvelopeBytesMax;  // No member sends rows to a scheduler.
  const std::unique_ptr<Transport> transport = flags.faults.Around(NewZmqTransport(connections));
  HDPS_ASSIGN_OR_RETURN(const std::string address, transport->Listen(FLAGS_listen));
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<PidFile> pid_file, StartDaemon(kProgram, flags));
  WarnIfUnprotected(flags.connections, "scheduler", FLAGS_listen, address);

  SchedulerOptions options;
  options.job = std::make_shared<const Job>(std::move(job));
  options.out = out;
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  HDPS_RETURN_IF_ERROR(FillStart(flags, text, *clock, &options));
  options.clock = clock.get();
  const std::unique_ptr<Programs> programs = NewPosixPrograms();
  options.programs = programs.get();
  HDPS_ASSIGN_OR_RETURN(options.given_job, GivenJob(text, flags.overrides));
  options.num_servers = FLAGS_servers;
  options.num_workers = FLAGS_workers;
  options.boot = BootIdentity();
  options.guests_read = GuestsMayRead(flags.connections, FLAGS_listen);
  HDPS_ASSIGN_OR_RETURN(options.resume, ReadResume(FLAGS_resume));
  options.init = WholeInitPath(FLAGS_init);
  options.same_run = FLAGS_same_run;
  options.tensorboard = FLAGS_tensorboard;
  options.pictures = std::make_shared<Published<JobPicture>>();
  HDPS_ASSIGN_OR_RETURN(
      const std::unique_ptr<HttpServer> server,
      ServeHttp(http, PicturePaths(options.pictures, *clock, MembersHere::kNone)));
  if (server == nullptr) options.pictures.reset();  // Nobody looks.
  ProgressListener listener =
      flags.log_file.empty() ? SpeakOnStderr() : AlsoLogged(SpeakOnStderr());
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<SchedulerNode> node,
                        SchedulerNode::Make(options, listener, *files));
  TellWhereToWatch(http, kProgram, server.get());
  listener.notice("hdps-scheduler: job '" + options.job->name + "' listens on " + address +
                  ", waits for " + Counted(FLAGS_servers, "server") + " and " +
                  Counted(FLAGS_workers, "worker"));
  if (!FLAGS_address_file.empty()) {
    HDPS_RETURN_IF_ERROR(WriteFileAtomically(*files, FLAGS_address_file, address + "\n"));
  }
  NodeLoopOptions loop;
  loop.stop = &StopRequested();
  loop.stop_reason = "the scheduler was told to stop";
  loop.leave_ms = flags.leave_ms;
  return RunNodeLoop(*node, *transport, *clock, loop);
}

}  // namespace
}  // namespace hdps

int main(int argc, char** argv) {
  return hdps::RunDaemon(hdps::kProgram, hdps::kUsage, hdps::DaemonFlagsAnd(hdps::kFlags), argc,
                         argv, hdps::Run);
}
