// The flags of a member of the cluster, a server or a worker.
#include <gflags/gflags.h>

#include "common/platform/process_watch.h"
#include "common/process/daemon.h"
#include "common/process/elect_flags.h"
#include "common/protocol/locate/scheduler_locator.h"

DEFINE_string(scheduler, "", hdps::kSchedulerHelp);
DEFINE_int32(
    rank, -1,
    "Number of this member among the servers or workers, from 0; -1: the scheduler picks one");
DEFINE_uint32(servers, 0, "Number of servers that the scheduler must expect too; 0: any number");
DEFINE_uint32(workers, 0, "Number of workers that the scheduler must expect too; 0: any number");
DEFINE_int32(threads, 0, "Number of computing threads; 0: one per core");

namespace hdps {

Result<MemberFlags> ReadMemberFlags(const DaemonFlags& flags) {
  HDPS_RETURN_IF_ERROR(CheckSchedulerGiven(FLAGS_scheduler));
  constexpr int kRankMax = 4095;
  if (FLAGS_rank < -1 || FLAGS_rank > kRankMax) {
    return Status(Code::kInvalidArgument, "--rank=" + std::to_string(FLAGS_rank) +
                                              " is out of range; give 0 to " +
                                              std::to_string(kRankMax) + ", or -1 for any");
  }
  constexpr int kThreadsMax = 4096;
  if (FLAGS_threads < 0 || FLAGS_threads > kThreadsMax) {
    return Status(Code::kInvalidArgument,
                  "--threads=" + std::to_string(FLAGS_threads) +
                      " is out of range; give 1 to 4096, or 0 for one per core");
  }
  MemberFlags member;
  HDPS_ASSIGN_OR_RETURN(member.identity.locator, FindScheduler(FLAGS_scheduler, flags.connections));
  member.name = NewPeerName();
  member.identity.self = member.name.peer;
  member.identity.scheduler_address = FLAGS_scheduler;
  member.identity.rank = FLAGS_rank;
  member.identity.num_servers = FLAGS_servers;
  member.identity.num_workers = FLAGS_workers;
  member.identity.host = HostAndProcess();
  member.identity.process = OwnProcessName();
  member.threads = FLAGS_threads;
  return member;
}

}  // namespace hdps
