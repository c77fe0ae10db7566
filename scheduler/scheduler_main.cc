// hdps-scheduler: brings the members of one job together and leads them through it.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "common/job/job.h"
#include "common/net/transport.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/process/command_line.h"
#include "scheduler/console_output.h"
#include "scheduler/scheduler_process.h"
#include "scheduler/validate_cluster.h"

DEFINE_string(job, "", "Job file: the same for every member of the cluster");
DEFINE_string(set, "", "Fields of the job file to override: key.path=value,...");
DEFINE_string(out, "",
              "Folder for summary.json, metrics.jsonl and checkpoint/; servers on other machines "
              "must see it under the same path");
DEFINE_string(listen, "tcp://127.0.0.1:8118",
              "Where the scheduler listens: tcp://HOST:PORT (port 0 picks one) or ipc://PATH");
DEFINE_uint32(servers, 1, "Servers of the job");
DEFINE_uint32(workers, 1, "Workers of the job");
DEFINE_string(resume, "auto",
              "auto: go on from the newest checkpoint in --out; never: begin anew, and refuse an "
              "--out that holds one");
DEFINE_string(address_file, "", "Gets the address once the scheduler listens, for scripts");
DEFINE_string(log, "info", "Least level that is logged: info, warning or error");
DEFINE_string(log_file, "", "Where the log goes; empty: stderr");
DEFINE_string(pid_file, "", "Holds the number of this process while it runs");
DEFINE_bool(insecure, false, "Allow addresses beyond loopback although nothing is encrypted");
DEFINE_bool(print_config, false, "Print the job with every default written out, and end");

namespace hdps {
namespace {

constexpr char kUsage[] =
    "hdps-scheduler: leads the servers and workers of one job\n"
    "usage: hdps-scheduler --job=FILE --out=DIR [--servers=M --workers=N] [flags]";

Status CheckFlags() {
  if (FLAGS_job.empty()) {
    return {Code::kInvalidArgument, "--job is missing; give the job file, --job=FILE"};
  }
  if (FLAGS_out.empty() && !FLAGS_print_config) {
    return {Code::kInvalidArgument, "--out is missing; give the folder for results, --out=DIR"};
  }
  if (FLAGS_resume != "auto" && FLAGS_resume != "never") {
    return {Code::kInvalidArgument, "--resume=" + FLAGS_resume + ": expected auto or never"};
  }
  return CheckAddress(FLAGS_listen, FLAGS_insecure);
}

Result<SchedulerExit> Run() {
  HDPS_RETURN_IF_ERROR(CheckFlags());
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_ASSIGN_OR_RETURN(Job job,
                        LoadJob(*files, FLAGS_job, SplitOverrides(FLAGS_set), DataFiles::kNotNeeded));
  if (FLAGS_print_config) {
    std::fputs((PrintJob(job) + "\n").c_str(), stdout);
    return SchedulerExit();
  }
  HDPS_RETURN_IF_ERROR(ValidateCluster(job, FLAGS_servers, FLAGS_workers));
  const std::unique_ptr<Transport> transport =
      NewZmqTransport({.self = kSchedulerPeer, .insecure = FLAGS_insecure});
  HDPS_ASSIGN_OR_RETURN(const std::string address, transport->Listen(FLAGS_listen));
  HDPS_RETURN_IF_ERROR(StartLogging("hdps-scheduler", FLAGS_log_file, FLAGS_log));
  const PidFile pid_file(FLAGS_pid_file);
  HDPS_RETURN_IF_ERROR(pid_file.status());

  SchedulerOptions options;
  options.job = std::make_shared<const Job>(std::move(job));
  // Servers are told this path, and each has a working folder of its own.
  options.out = std::filesystem::absolute(FLAGS_out).lexically_normal().string();
  options.num_servers = FLAGS_servers;
  options.num_workers = FLAGS_workers;
  options.resume = FLAGS_resume == "never" ? Resume::kNever : Resume::kAuto;
  ProgressListener voice = SpeakOnStderr(!FLAGS_log_file.empty());
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<SchedulerNode> node,
                        SchedulerNode::Make(options, voice, *files));
  InstallStopSignals();
  voice.notice("hdps-scheduler: job '" + options.job->name + "' listens on " + address +
               ", waits for " + std::to_string(FLAGS_servers) + " server(s) and " +
               std::to_string(FLAGS_workers) + " worker(s)");
  if (!FLAGS_address_file.empty()) {
    HDPS_RETURN_IF_ERROR(WriteFileAtomically(*files, FLAGS_address_file, address + "\n"));
  }
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  SchedulerExit exit = RunSchedulerProcess(*node, *transport, *clock, &StopRequested());
  LOG(INFO) << "ended with status " << exit.status << ": " << exit.reason;
  return exit;
}

}  // namespace
}  // namespace hdps

int main(int argc, char** argv) {
  constexpr char kProgram[] = "hdps-scheduler";
  const hdps::Status parsed = hdps::ParseCommandLine(hdps::kUsage, &argc, &argv);
  if (!parsed.ok()) return hdps::ReportAndExitStatus(kProgram, parsed);
  const hdps::Result<hdps::SchedulerExit> exit = hdps::Run();
  if (!exit.ok()) return hdps::ReportAndExitStatus(kProgram, exit.status());
  if (exit->status == hdps::kExitDone) return hdps::kExitDone;
  const auto code =
      exit->status == hdps::kExitMistaken ? hdps::Code::kInvalidArgument : hdps::Code::kUnavailable;
  return hdps::ReportAndExitStatus(kProgram, {code, exit->reason});
}
