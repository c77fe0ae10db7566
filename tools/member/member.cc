// Implements hdps member: becomes the scheduler, a server or a worker of a job.
#include <gflags/gflags.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/net/listening.h"
#include "common/platform/programs/child_process.h"
#include "common/process/command_line.h"
#include "common/process/faults.h"
#include "common/process/program_flags.h"
#include "tools/commands.h"
#include "tools/member/member_plan.h"
#include "tools/member/program_words.h"
#include "tools/member/supervise.h"

DEFINE_string(role, "",
              "member: scheduler, server or worker; empty: as MS_ROLE or DMLC_ROLE says, or the "
              "number among all processes that MPI or Slurm gives");
DEFINE_string(restart, "",
              "member: on-failure: a member that dies is started again; never: it is not; empty: "
              "on-failure under MPI and Slurm outside Kubernetes, never elsewhere");
DEFINE_int32(rank, -1,
             "member: number among the servers or workers, from 0; -1: as the launcher says, or "
             "the scheduler picks one");
DEFINE_string(log_file, "", "member: file for the log; empty: stderr");
DEFINE_string(pid_file, "", "member: file that holds the number of the process while it runs");
DEFINE_int32(die_with_parent, 0,
             "member: number of the process that starts this one: when it ends, this one stops as "
             "well; 0: it does not");
DEFINE_string(faults, "", hdps::kFaultsHelp);
DEFINE_string(address_file, "",
              "member: file that holds the scheduler's address; empty: scheduler.address in --out");
DEFINE_bool(same_run, false,
            "member: as scheduler, continue a run in which an earlier request to stop still holds");
DEFINE_uint64(expected_rows, 0,
              "member: number of rows that each table will have in all, to foresee a server's "
              "memory; 0: unknown");
DEFINE_string(
    record, "",
    "member: as a server, folder for the order in which it takes requests; empty: none is "
    "written; replay: the folder that holds the record of all servers");
DEFINE_uint32(gpu, 0,
              "member: number of this worker among the workers of its machine, which use its GPUs "
              "in turn; not given: the launcher's number on this machine");
DEFINE_string(on_term, "job",
              "member: what SIGTERM asks for: job drains, saves and ends the whole job; leave ends "
              "this member alone, with status 3, and the job waits for another in its place");
DECLARE_string(job);
DECLARE_string(out);
DECLARE_string(scheduler);
DECLARE_uint32(servers);
DECLARE_uint32(workers);

namespace hdps {
namespace {

constexpr Role kRoles[] = {Role::kScheduler, Role::kServer, Role::kWorker};

// Returns the flags of all roles, each once.
std::vector<std::string_view> AllFlags() {
  std::vector<std::string_view> names = {"role", "restart"};
  for (const Role role : kRoles) {
    for (const std::string_view name : FlagsOfProgram(role)) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

MemberFlagsGiven ReadGiven() {
  MemberFlagsGiven given;
  for (const std::string_view flag : AllFlags()) {
    const std::string name(flag);
    const auto info = gflags::GetCommandLineFlagInfoOrDie(name.c_str());
    if (IsFromEnvironment(name)) {
      given.from_environment.insert(name);
    } else if (!info.is_default) {
      given.flags[name] = info.current_value;
    }
  }
  given.out = FLAGS_out;
  given.scheduler = FLAGS_scheduler;
  given.own_host = OwnHost();
  return given;
}

// A value of the command line or of an HDPS_ variable; other variables are PlanMember()'s to read.
GivenMember ReadMember(const MemberFlagsGiven& flags) {
  constexpr std::string_view kOwn[] = {"HDPS_RANK", "HDPS_SERVERS", "HDPS_WORKERS",
                                       "HDPS_SCHEDULER"};
  const Variables own = VariablesOf(kOwn);
  const auto given = [&](const std::string& name, const std::string& variable) {
    return flags.flags.contains(name) || own.contains(variable);
  };
  GivenMember member;
  member.role = FLAGS_role;
  member.restart = FLAGS_restart;
  if (given("rank", "HDPS_RANK")) member.rank = FLAGS_rank;
  if (given("servers", "HDPS_SERVERS")) member.servers = FLAGS_servers;
  if (given("workers", "HDPS_WORKERS")) member.workers = FLAGS_workers;
  member.scheduler = given("scheduler", "HDPS_SCHEDULER");
  return member;
}

Status Run() {
  if (FLAGS_job.empty()) {
    return {Code::kInvalidArgument, "--job is missing; give the job file, --job=FILE"};
  }
  HDPS_RETURN_IF_ERROR(DieWithParent(FLAGS_die_with_parent));
  const MemberFlagsGiven given = ReadGiven();
  HDPS_ASSIGN_OR_RETURN(const MemberPlan plan,
                        PlanMember(ReadMember(given), VariablesOf(MemberVariables())));
  HDPS_ASSIGN_OR_RETURN(const std::string program,
                        ProgramBeside(std::string("hdps-") + RoleName(plan.role)));
  HDPS_ASSIGN_OR_RETURN(std::vector<std::string> words, ProgramArguments(plan, given));
  words.insert(words.begin(), program);
  if (!plan.restart) return BecomeProgram(words);
  SupervisedMember member{plan.role, MemberName(plan), std::move(words), {}, {}};
  if (plan.role == Role::kScheduler) {
    // A new scheduler continues the job or its stop.
    member.again = {"--same_run"};
    if (const auto resume = given.flags.find("resume");
        resume != given.flags.end() && resume->second != "changed") {
      member.again.push_back("--resume=auto");
    }
  } else {
    member.address_file = AddressFile(given);
  }
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  HDPS_ASSIGN_OR_RETURN(const ProcessEnd end, SuperviseMember(member, *files, *clock));
  return StatusOf(end);
}

}  // namespace

Subcommand MemberCommand() {
  return {"member", "become the scheduler, a server or a worker, as variables say",
          "hdps member --job=FILE --out=DIR [--servers=M --workers=N] [flags]\n"
          "Flags of other roles than its own are ignored: all members may get the same.",
          AllFlags(), Run};
}

}  // namespace hdps
