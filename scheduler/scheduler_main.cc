// hdps-scheduler: gathers the members of one job and leads them through it.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
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
#include "common/process/elect_flags.h"
#include "common/process/http_flags.h"
#include "common/process/run_lock.h"
#include "common/process/terminal.h"
#include "common/telemetry/published.h"
#include "scheduler/election/fences.h"
#include "scheduler/election/reign.h"
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
DECLARE_string(elect);
DECLARE_int32(elect_ttl_s);
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
  if (!FLAGS_elect.empty()) command += " --elect=" + ShellWord(FLAGS_elect);
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

Status CheckElection(const Job& job) {
  if (FLAGS_elect.empty()) return {};
  constexpr int kTtlMin = 2, kTtlMax = 300;
  if (FLAGS_elect_ttl_s < kTtlMin || FLAGS_elect_ttl_s > kTtlMax) {
    return {Code::kInvalidArgument, "--elect_ttl_s=" + std::to_string(FLAGS_elect_ttl_s) +
                                        " is out of range; give " + std::to_string(kTtlMin) +
                                        " to " + std::to_string(kTtlMax)};
  }
  const int64_t timeout_s = job.cluster.scheduler_timeout_s;
  if (timeout_s < 2 * int64_t{FLAGS_elect_ttl_s}) {
    return {Code::kInvalidArgument,
            "--elect_ttl_s=" + std::to_string(FLAGS_elect_ttl_s) +
                " is too long: members end after cluster.scheduler_timeout_s=" +
                std::to_string(timeout_s) + " without a scheduler; give at most half of that"};
  }
  return {};
}

Status CheckFlags(const DaemonFlags& flags) {
  if (FLAGS_out.empty() && !FLAGS_print_config) {
    return {Code::kInvalidArgument, "--out is missing; give the folder for results, --out=DIR"};
  }
  HDPS_ASSIGN_OR_RETURN(const Resume resume, ReadResume(FLAGS_resume));
  if (!FLAGS_elect.empty() && resume == Resume::kNever) {
    return {Code::kInvalidArgument,
            "--resume=never does not go with --elect: who is elected goes on from what the one "
            "before has left; give --resume=auto"};
  }
  if (FLAGS_tensorboard) HDPS_RETURN_IF_ERROR(CanWriteEvents());
  return CheckAddress(FLAGS_listen, flags.connections.may_leave());
}

// Holds what a scheduler has before it leads.
struct Parts {
  std::unique_ptr<FileSystem> files;
  std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  std::unique_ptr<FileLock> lock;  // Null with --elect, where a stopped leader would hold it.
  std::unique_ptr<Etcd> etcd;      // Null without --elect.
  std::unique_ptr<Transport> transport;
  std::string address;
  std::unique_ptr<Programs> programs = NewPosixPrograms();
  std::unique_ptr<HttpServer> server;
  ProgressListener listener;
  int64_t leave_ms = 0;  // As DaemonFlags has it.
};

// How a process that leads, or has led, ends.
struct LeadEnd {
  ProcessEnd end;
  bool job_goes_on = false;  // Another scheduler goes on with the job.
};

Status OpenFolder(const DaemonFlags& flags, const std::string& out, Parts* parts) {
  if (FLAGS_elect.empty()) {
    HDPS_ASSIGN_OR_RETURN(parts->lock, LockRunFolder(*parts->files, kProgram, out));
    return {};
  }
  constexpr int64_t kTriesInLease = 6, kLeastMs = 300, kMostMs = 5000;
  HDPS_ASSIGN_OR_RETURN(
      parts->etcd,
      OpenEtcd(*parts->files, "--elect", FLAGS_elect, flags.connections,
               std::clamp(FLAGS_elect_ttl_s * 1000 / kTriesInLease, kLeastMs, kMostMs)));
  const Status made = parts->files->MakeDirectories(out);
  return made.ok() ? made
                   : Status(Code::kInvalidArgument,
                            "--out=" + out + " cannot be written to: " + made.message());
}

Status FillOptions(const DaemonFlags& flags, const WrittenJob& text, const Parts& parts,
                   SchedulerOptions* options) {
  HDPS_RETURN_IF_ERROR(FillStart(flags, text, *parts.clock, options));
  HDPS_ASSIGN_OR_RETURN(options->given_job, GivenJob(text, flags.overrides));
  HDPS_ASSIGN_OR_RETURN(options->resume, ReadResume(FLAGS_resume));
  options->clock = parts.clock.get();
  options->programs = parts.programs.get();
  options->num_servers = FLAGS_servers;
  options->num_workers = FLAGS_workers;
  // The next leader may be on another machine.
  options->boot = FLAGS_elect.empty() ? BootIdentity() : "";
  options->guests_read = GuestsMayRead(flags.connections, FLAGS_listen);
  options->init = WholeInitPath(FLAGS_init);
  options->same_run = FLAGS_same_run || !FLAGS_elect.empty();
  options->tensorboard = FLAGS_tensorboard;
  return {};
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

// Leads the job to its end, or until `reign`, which is null without an election, is lost.
Result<LeadEnd> Lead(const HttpFlags& http, const SchedulerOptions& options, Parts& parts,
                     Reign* reign) {
  const MayLead may_lead = [reign] { return reign == nullptr || reign->holds(); };
  const std::unique_ptr<FileSystem> files = NewFencedFiles(*parts.files, may_lead);
  const std::unique_ptr<Transport> transport = NewFencedTransport(*parts.transport, may_lead);
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<SchedulerNode> node,
                        SchedulerNode::Make(options, parts.listener, *files));
  TellWhereToWatch(http, kProgram, parts.server.get());
  parts.listener.notice("hdps-scheduler: job '" + options.job->name + "' listens on " +
                        parts.address + ", waits for " + Counted(FLAGS_servers, "server") +
                        " and " + Counted(FLAGS_workers, "worker"));
  if (!FLAGS_address_file.empty()) {
    HDPS_RETURN_IF_ERROR(WriteFileAtomically(*files, FLAGS_address_file, parts.address + "\n"));
  }
  NodeLoopOptions loop;
  loop.stop = &StopRequested();
  loop.stop_reason = "the scheduler was told to stop";
  loop.leave_ms = parts.leave_ms;
  if (reign != nullptr) loop.end_now = [reign] { return reign->Lost(); };
  ProcessEnd end = RunNodeLoop(*node, *transport, *parts.clock, loop);
  if (!node->stepped_down() && may_lead()) ForgetAddress(*files, parts.address);
  return LeadEnd{std::move(end), node->stepped_down()};
}

// Leads the job once this process is elected.
Result<ProcessEnd> LeadElected(const HttpFlags& http, SchedulerOptions options, Parts& parts) {
  ElectionOptions election;
  election.address = parts.address;
  election.ttl_s = FLAGS_elect_ttl_s;
  election.patience_ms = int64_t{options.job->cluster.scheduler_timeout_s} * 1000;
  Result<Elected> elected = AwaitReign(std::move(parts.etcd), election, *parts.clock,
                                       StopRequested(), parts.listener.notice);
  if (!elected.ok()) {
    return Status(elected.status().code(),
                  "--elect=" + FLAGS_elect + ": " + elected.status().message());
  }
  if (elected->reign == nullptr) return elected->end;
  Reign& reign = *elected->reign;
  options.reign = reign.number();
  const Result<LeadEnd> lead = Lead(http, options, parts, &reign);
  if (const std::optional<ProcessEnd> lost = reign.Lost()) return *lost;
  // What fails on this machine may go well on another.
  const bool another_goes_on = lead.ok() ? lead->job_goes_on : RestartMayHelp(lead.status().code());
  const ProcessEnd end =
      lead.ok() ? lead->end
                : ProcessEnd{ExitStatusOf(lead.status().code()), lead.status().message()};
  const std::string warning = another_goes_on ? reign.Leave() : reign.EndJob(end);
  if (!warning.empty()) parts.listener.notice("hdps-scheduler: warning: " + warning);
  return lead.ok() ? Result<ProcessEnd>(end) : lead.status();
}

Result<ProcessEnd> Run() {
  HDPS_ASSIGN_OR_RETURN(DaemonFlags flags, ReadDaemonFlags(KeyRole::kScheduler));
  HDPS_RETURN_IF_ERROR(CheckFlags(flags));
  Parts parts;
  parts.files = flags.faults.Around(NewPosixFileSystem());
  FileSystem& files = *parts.files;
  HDPS_ASSIGN_OR_RETURN(const HttpFlags http,
                        ReadHttpFlags(files, kHttpOnThisMachine, flags.connections.insecure));
  HDPS_ASSIGN_OR_RETURN(const WrittenJob text, ReadWrittenJob(files, flags.job));
  HDPS_ASSIGN_OR_RETURN(
      Job job, LoadPlannedJob(files, text, &flags.overrides, FLAGS_workers, DataFiles::kNotNeeded));
  if (FLAGS_print_config) {
    PrintOutText(EscapeJson(PrintJob(job)) + "\n");
    return Status(Code::kCancelled, "the job was to be printed");
  }
  const InputFile read = {"the job file", flags.job};
  HDPS_RETURN_IF_ERROR(
      RefuseInput(files, "--address_file=" + FLAGS_address_file, FLAGS_address_file, {&read, 1}));
  HDPS_RETURN_IF_ERROR(ValidateCluster(job, FLAGS_servers, FLAGS_workers));
  HDPS_RETURN_IF_ERROR(CheckElection(job));
  SchedulerOptions options;
  options.job = std::make_shared<const Job>(std::move(job));
  // Servers get this path, and each has its own working folder.
  options.out = std::filesystem::absolute(FLAGS_out).lexically_normal().string();
  HDPS_RETURN_IF_ERROR(OpenFolder(flags, options.out, &parts));
  TransportOptions connections = flags.connections.Options(kSchedulerPeer);
  connections.part_bytes_max = kEnvelopeBytesMax;  // No member sends rows to a scheduler.
  parts.transport = flags.faults.Around(NewZmqTransport(connections));
  HDPS_ASSIGN_OR_RETURN(parts.address, ListenWhereItWas(files, *parts.transport));
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<PidFile> pid_file, StartDaemon(kProgram, flags));
  WarnIfUnprotected(flags.connections, "scheduler", FLAGS_listen, parts.address);
  HDPS_RETURN_IF_ERROR(FillOptions(flags, text, parts, &options));
  options.pictures = std::make_shared<Published<JobPicture>>();
  HDPS_ASSIGN_OR_RETURN(parts.server, ServeHttp(http, PicturePaths(options.pictures, *parts.clock,
                                                                   MembersHere::kNone)));
  if (parts.server == nullptr) options.pictures.reset();  // Nobody looks.
  parts.listener = flags.log_file.empty() ? SpeakOnStderr() : AlsoLogged(SpeakOnStderr());
  parts.leave_ms = flags.leave_ms;
  if (!FLAGS_elect.empty()) return LeadElected(http, std::move(options), parts);
  HDPS_ASSIGN_OR_RETURN(LeadEnd lead, Lead(http, options, parts, nullptr));
  return std::move(lead.end);
}

}  // namespace
}  // namespace hdps

int main(int argc, char** argv) {
  return hdps::RunDaemon(hdps::kProgram, hdps::Role::kScheduler, hdps::kUsage, argc, argv,
                         hdps::Run);
}
