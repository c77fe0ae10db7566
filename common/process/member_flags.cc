// The flags of a member of the cluster, a server or a worker.
#include <gflags/gflags.h>

#include "common/net/listening.h"
#include "common/platform/process_watch.h"
#include "common/process/daemon.h"

DEFINE_string(scheduler, "", "Where the scheduler listens: tcp://HOST:PORT or ipc://PATH");
DEFINE_int32(rank, -1, "Rank of this member among its kind, from 0 on; -1: the scheduler picks");
DEFINE_uint32(servers, 0, "Servers of the cluster, to be compared with the scheduler's; 0: any");
DEFINE_uint32(workers, 0, "Workers of the cluster, to be compared with the scheduler's; 0: any");
DEFINE_int32(threads, 0, "Threads that compute; 0: one a core");

namespace hdps {

Result<MemberFlags> ReadMemberFlags(const DaemonFlags& flags) {
  HDPS_RETURN_IF_ERROR(CheckSchedulerGiven(FLAGS_scheduler));
  if (FLAGS_rank < -1) {
    return Status(Code::kInvalidArgument, "--rank=" + std::to_string(FLAGS_rank) +
                                              " is out of range; give 0 or above, or -1 for any");
  }
  constexpr int kThreadsMax = 4096;
  if (FLAGS_threads < 0 || FLAGS_threads > kThreadsMax) {
    return Status(Code::kInvalidArgument,
                  "--threads=" + std::to_string(FLAGS_threads) +
                      " is out of range; give 1 to 4096, or 0 for one a core");
  }
  const Result<Address> scheduler = AddressToDial(FLAGS_scheduler, flags.connections.may_leave());
  if (!scheduler.ok()) {
    return Status(scheduler.status().code(), "--scheduler: " + scheduler.status().message());
  }
  MemberFlags member;
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

std::vector<std::string_view> MemberFlagsAnd(std::span<const std::string_view> own) {
  std::vector<std::string_view> names = DaemonFlagsAnd(own);
  for (const std::string_view name : {"scheduler", "rank", "servers", "workers", "threads"}) {
    names.push_back(name);
  }
  return names;
}

}  // namespace hdps
