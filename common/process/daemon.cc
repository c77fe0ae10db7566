// Flags of the daemons, and the steps from start to end.
#include "common/process/daemon.h"

#include <gflags/gflags.h>
#include <glog/logging.h>

#include <cstdio>
#include <utility>

#include "common/job/job_file.h"
#include "common/platform/output_file.h"
#include "common/process/program_flags.h"
#include "common/process/terminal.h"

DEFINE_string(job, "", "Job file, the same for every member of the cluster");
DEFINE_string(set, "", "Fields of the job file to override: key.path=value,...");
DEFINE_string(log, "info", "Lowest level that is logged: info, warning or error");
DEFINE_string(log_file, "", "File for the log; empty: stderr");
DEFINE_string(pid_file, "",
              "File that holds the number of this process while it runs; empty: none");
DEFINE_int32(die_with_parent, 0,
             "Number of the process that starts this one: when it ends, this one stops as well; 0: "
             "it does not");
DEFINE_string(on_term, "job",
              "What SIGTERM asks for: job drains, saves and ends the whole job; leave ends this "
              "process alone, with status 3, and the job waits for another in its place");
DEFINE_uint32(leave_s, 25,
              "Seconds in which a process that leaves hands over what it has, 1 to 3600");
DEFINE_string(faults, "", hdps::kFaultsHelp);

namespace hdps {

namespace {

// Returns the time in which a process leaves when it is told to stop; 0: the job is stopped.
Result<int64_t> ReadLeaveMs() {
  constexpr uint32_t kLeaveSMax = 3600;
  if (FLAGS_on_term != "job" && FLAGS_on_term != "leave") {
    return Status(Code::kInvalidArgument,
                  "--on_term=" + FLAGS_on_term +
                      " is not known; give job, which stops the whole job, or leave");
  }
  if (FLAGS_leave_s < 1 || FLAGS_leave_s > kLeaveSMax) {
    return Status(Code::kInvalidArgument, "--leave_s=" + std::to_string(FLAGS_leave_s) +
                                              " is out of range; give 1 to " +
                                              std::to_string(kLeaveSMax) + " seconds");
  }
  return FLAGS_on_term == "leave" ? int64_t{1000} * FLAGS_leave_s : 0;
}

}  // namespace

Result<DaemonFlags> ReadDaemonFlags(KeyRole role) {
  if (FLAGS_faults == "list") {
    PrintOutText(ListFailpoints());
    return Status(Code::kCancelled, "the failpoints were to be listed");
  }
  if (FLAGS_job.empty()) {
    return Status(Code::kInvalidArgument, "--job is missing; give the job file, --job=FILE");
  }
  DaemonFlags flags;
  flags.job = FLAGS_job;
  flags.overrides = SplitOverrides(FLAGS_set);
  flags.log = FLAGS_log;
  flags.log_file = FLAGS_log_file;
  flags.pid_file = FLAGS_pid_file;
  HDPS_ASSIGN_OR_RETURN(flags.leave_ms, ReadLeaveMs());
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const InputFile job = {"the job file", FLAGS_job};
  for (const auto& [name, path] :
       {std::pair("--log_file=", FLAGS_log_file), std::pair("--pid_file=", FLAGS_pid_file)}) {
    HDPS_RETURN_IF_ERROR(RefuseInput(*files, name + path, path, {&job, 1}));
  }
  HDPS_ASSIGN_OR_RETURN(flags.connections, ReadConnections({role}));
  HDPS_ASSIGN_OR_RETURN(flags.faults, ParseFaults(FLAGS_faults));
  return flags;
}

Result<std::unique_ptr<PidFile>> StartDaemon(const std::string& program, const DaemonFlags& flags) {
  HDPS_RETURN_IF_ERROR(StartLogging(program, flags.log_file, flags.log));
  if (flags.faults.armed) {
    LOG(ERROR) << "warning: faults are injected on purpose: --faults=" << FLAGS_faults;
    ArmFailpoints(flags.faults.points);
  }
  InstallStopSignals();  // A process that reads the pid file may send a stop signal at once.
  auto pid_file = std::make_unique<PidFile>(flags.pid_file);
  HDPS_RETURN_IF_ERROR(pid_file->status());
  return pid_file;
}

int RunDaemon(const std::string& program, Role role, const std::string& usage, int argc,
              char** argv, const std::function<Result<ProcessEnd>()>& run) {
  EndWhereMemoryIsFull(program);
  KeepFreedMemory();
  RefuseTooLargeFiles();
  AllowManyFiles();
  const Status parsed = ParseCommandLine(usage, &argc, &argv, nullptr, FlagsOfProgram(role));
  if (!parsed.ok()) return ReportAndExitStatus(program, parsed);
  if (const Status bound = DieWithParent(FLAGS_die_with_parent); !bound.ok()) {
    return ReportAndExitStatus(program, bound);
  }
  const Result<ProcessEnd> end = run();
  if (!end.ok()) return ReportAndExitStatus(program, end.status());
  LOG(INFO) << "ended with status " << end->status << ": " << end->reason;
  return ReportAndExitStatus(program, StatusOf(*end));
}

}  // namespace hdps
