// Judges what was asked for.
#include "scheduler/members/scaling.h"

#include "scheduler/members/validate_cluster.h"

namespace hdps {
namespace {

// A job with copies keeps its number of servers, also while a lost one's place is free.
uint32_t ServersOf(const Job& job, const Rendezvous& rendezvous) {
  return job.cluster.replicas > 0 ? rendezvous.Places(Role::kServer)
                                  : rendezvous.Count(Role::kServer);
}

}  // namespace

Result<std::string> Scaling::Accept(const Job& job, const ScaleRequest& request,
                                    Rendezvous& rendezvous) {
  const int64_t servers_now = under_way_ ? servers_ : ServersOf(job, rendezvous);
  const int64_t workers_now = under_way_ ? workers_ : rendezvous.Count(Role::kWorker);
  const int64_t servers = request.servers + (request.servers_relative ? servers_now : 0);
  const int64_t workers = request.workers + (request.workers_relative ? workers_now : 0);
  if (servers < 1 || workers < 1 || servers > kMembersMax || workers > kMembersMax) {
    return Status(Code::kInvalidArgument,
                  std::to_string(servers) + " servers and " + std::to_string(workers) +
                      " workers are no cluster; there are " + std::to_string(servers_now) +
                      " and " + std::to_string(workers_now) +
                      ", and at least one of each must stay");
  }
  if (servers <= job.cluster.replicas && servers != servers_now) {
    return Status(Code::kInvalidArgument,
                  "cluster.replicas is " + std::to_string(job.cluster.replicas) + ", and " +
                      std::to_string(servers) + " server(s) cannot hold so many copies of a row " +
                      "beside it; at least " + std::to_string(job.cluster.replicas + 1) +
                      " must stay");
  }
  HDPS_RETURN_IF_ERROR(
      ValidateMembers(job, static_cast<uint32_t>(servers), static_cast<uint32_t>(workers)));
  const std::string text =
      std::to_string(servers) + " server(s) and " + std::to_string(workers) + " worker(s)";
  if (servers == servers_now && workers == workers_now) return "the job has " + text;
  Continue(static_cast<uint32_t>(servers), static_cast<uint32_t>(workers), rendezvous);
  std::string missing = rendezvous.Missing();
  return "the job is to go on with " + text +
         (missing.empty() ? "" : "; start " + missing + " with --scheduler=ADDRESS, and it joins");
}

void Scaling::Continue(uint32_t servers, uint32_t workers, Rendezvous& rendezvous) {
  servers_ = servers;
  workers_ = workers;
  under_way_ = true;
  rendezvous.OpenPlaces(Role::kServer, servers_);
  rendezvous.OpenPlaces(Role::kWorker, workers_);
}

}  // namespace hdps
