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
#include "common/net/address.h"
#include "common/net/node_loop.h"
#include "common/net/transport.h"
#include "common/planning/placement.h"
#include "common/platform/file_identity.h"
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
              "File that holds the address from when the scheduler listens until the job ends, for "
              "--scheduler=file:PATH and scripts; empty: none");
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

// Returns the address that --address_file holds, with its end of line; nothing if there is none.
std::string HeldAddress(FileSystem& files) {
  if (FLAGS_address_file.empty() || NamesStream(FLAGS_address_file)) return "";
  const Result<std::string> held = ReadWholeFile(files, FLAGS_address_file, kAddressBytesMax + 1);
  return held.ok() ? *held : "";
}

// Listens at --listen. Where that leaves the port open, the port of the scheduler that wrote
// --address_file is tried first, because members of the run still dial it.
Result<std::string> ListenWhereItWas(FileSystem& files, Transport& transport) {
  const Result<Address> asked = ParseAddress(FLAGS_listen);
  const std::string held = HeldAddress(files);
  const Result<Address> former = ParseAddress(held.substr(0, held.find('\n')));
  if (asked.ok() && asked->scheme == Address::Scheme::kTcp && asked->port == 0 && former.ok() &&
      former->scheme == Address::Scheme::kTcp && former->CanBeDialed()) {
    Address again = *asked;
    again.port = former->port;
    Result<std::string> listens = transport.Listen(again.ToString());
    if (listens.ok()) return listens;
  }
  return transport.Listen(FLAGS_listen);
}

// Removes --address_file after the job, if it still holds the address of this scheduler, so that no
// member of a later run dials it.
void ForgetAddress(FileSystem& files, const std::string& address) {
  if (HeldAddress(files) != address + "\n") return;
  const Status removed = files.RemoveAll(FLAGS_address_file);
  if (!removed.ok()) LOG(WARNING) << "--address_file: " << removed.message();
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
  HDPS_ASSIGN_OR_RETURN(const std::string address, ListenWhereItWas(*files, *transport));
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
  const ProcessEnd end = RunNodeLoop(*node, *transport, *clock, loop);
  ForgetAddress(*files, address);
  return end;
}

}  // namespace
}  // namespace hdps

int main(int argc, char** argv) {
  return hdps::RunDaemon(hdps::kProgram, hdps::Role::kScheduler, hdps::kUsage, argc, argv,
                         hdps::Run);
}
