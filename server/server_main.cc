// hdps-server: holds rows for the workers of one job, on this machine.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <memory>
#include <string>

#include "common/job/job.h"
#include "common/net/transport.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/random.h"
#include "common/process/command_line.h"
#include "server/server_process.h"

DEFINE_string(job, "", "Job file: the same for every member of the cluster");
DEFINE_string(set, "", "Fields of the job file to override: key.path=value,...");
DEFINE_string(scheduler, "", "Where the scheduler listens: tcp://HOST:PORT or ipc://PATH");
DEFINE_string(listen, "tcp://127.0.0.1:0",
              "Where this server listens, as workers reach it; port 0 picks one");
DEFINE_int32(rank, -1, "Rank of this server, 0 to servers - 1; -1: the scheduler picks");
DEFINE_uint32(servers, 0, "Servers of the cluster, to be compared with the scheduler's; 0: any");
DEFINE_uint32(workers, 0, "Workers of the cluster, to be compared with the scheduler's; 0: any");
DEFINE_int32(threads, 0, "Threads that work on the rows; 0: one a core");
DEFINE_string(
    spill_path, "",
    "Folder for rows beyond cluster.memory_limit where the job names none; empty: one below "
    "/tmp");
DEFINE_uint64(
    expected_rows, 0,
    "Rows that each table will have in all, to foresee this server's memory; 0: not known");
DEFINE_string(log, "info", "Least level that is logged: info, warning or error");
DEFINE_string(log_file, "", "Where the log goes; empty: stderr");
DEFINE_string(pid_file, "", "Holds the number of this process while it runs");
DEFINE_bool(insecure, false, "Allow addresses beyond loopback although nothing is encrypted");

namespace hdps {
namespace {

constexpr char kUsage[] =
    "hdps-server: holds rows of a job's tables and updates them\n"
    "usage: hdps-server --job=FILE --scheduler=ADDRESS [flags]";

Status CheckFlags() {
  if (FLAGS_job.empty()) {
    return {Code::kInvalidArgument, "--job is missing; give the job file, --job=FILE"};
  }
  if (FLAGS_scheduler.empty()) {
    return {Code::kInvalidArgument,
            "--scheduler is missing; give the address that hdps-scheduler printed, "
            "--scheduler=tcp://HOST:PORT"};
  }
  if (FLAGS_rank < -1) {
    return {Code::kInvalidArgument, "--rank=" + std::to_string(FLAGS_rank) +
                                        " is out of range; give 0 or above, or -1 for any"};
  }
  constexpr int kThreadsMax = 4096;
  if (FLAGS_threads < 0 || FLAGS_threads > kThreadsMax) {
    return {Code::kInvalidArgument, "--threads=" + std::to_string(FLAGS_threads) +
                                        " is out of range; give 1 to 4096, or 0 for one a core"};
  }
  return CheckAddress(FLAGS_scheduler, FLAGS_insecure);
}

Result<ServerExit> Run() {
  HDPS_RETURN_IF_ERROR(CheckFlags());
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_ASSIGN_OR_RETURN(Job job,
                        LoadJob(*files, FLAGS_job, SplitOverrides(FLAGS_set), DataFiles::kNotNeeded));
  if (job.cluster.memory_limit > 0) ReturnFreedMemory();
  HDPS_RETURN_IF_ERROR(StartLogging("hdps-server", FLAGS_log_file, FLAGS_log));
  for (const std::string& warning : job.warnings) LOG(WARNING) << warning;
  const PidFile pid_file(FLAGS_pid_file);
  HDPS_RETURN_IF_ERROR(pid_file.status());

  ServerProcessOptions options;
  options.self = NewPeerId();
  const std::unique_ptr<Transport> transport =
      NewZmqTransport({.self = options.self, .insecure = FLAGS_insecure});
  HDPS_ASSIGN_OR_RETURN(options.own_address, transport->Listen(FLAGS_listen));
  options.job = std::make_shared<const Job>(std::move(job));
  options.scheduler_address = FLAGS_scheduler;
  options.rank = FLAGS_rank;
  options.num_servers = FLAGS_servers;
  options.num_workers = FLAGS_workers;
  options.host = HostAndProcess();
  options.own_process = true;
  options.expected_rows = FLAGS_expected_rows;
  options.spill_folder = FLAGS_spill_path;
  if (options.spill_folder.empty()) {
    options.spill_folder = "/tmp/hdps_spill_" + std::to_string(options.self.value);
  }
  InstallStopSignals();
  options.stop = &StopRequested();

  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  const std::unique_ptr<Executor> executor = NewTbbExecutor(FLAGS_threads);
  LOG(INFO) << "listening on " << options.own_address << ", scheduler at "
            << options.scheduler_address;
  ServerExit exit = RunServerProcess(options, *transport, *clock, *files, *executor);
  LOG(INFO) << "ended with status " << exit.status << ": " << exit.reason;
  return exit;
}

}  // namespace
}  // namespace hdps

int main(int argc, char** argv) {
  constexpr char kProgram[] = "hdps-server";
  const hdps::Status parsed = hdps::ParseCommandLine(hdps::kUsage, &argc, &argv);
  if (!parsed.ok()) return hdps::ReportAndExitStatus(kProgram, parsed);
  const hdps::Result<hdps::ServerExit> exit = hdps::Run();
  if (!exit.ok()) return hdps::ReportAndExitStatus(kProgram, exit.status());
  if (exit->status == hdps::kExitDone) return hdps::kExitDone;
  const auto code =
      exit->status == hdps::kExitMistaken ? hdps::Code::kInvalidArgument : hdps::Code::kUnavailable;
  return hdps::ReportAndExitStatus(kProgram, {code, exit->reason});
}
