// Checks requests to scale the job.
#include "scheduler/members/scaling.h"

#include "common/base/counted.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/protocol/status_messages.h"
#include "common/protocol/view.h"
#include "scheduler/members/validate_cluster.h"

namespace hdps {
Scaling::Answer Scaling::OnRequest(PeerId from, const ScaleRequest& request, const Job& job,
                                   const View* view, Rendezvous& rendezvous, TimeMs now) {
  if (from == asked_by_) return {.reply = reply_};
  if (view == nullptr) {
    return {.reply = {Code::kUnavailable, "the cluster is not complete; ask again when it is"}};
  }
  const Result<std::string> accepted = Accept(job, request, *view, rendezvous);
  asked_by_ = from;
  asked_at_ = now;
  reply_ = {accepted.status().code(), accepted.ok() ? *accepted : accepted.status().message()};
  return {reply_, accepted.ok()};
}

Result<std::string> Scaling::Accept(const Job& job, const ScaleRequest& request, const View& view,
                                    Rendezvous& rendezvous) {
  const auto servers_now = static_cast<int64_t>(under_way_ ? servers_ : view.servers.size());
  const auto workers_now = static_cast<int64_t>(under_way_ ? workers_ : view.workers.size());
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
                      Counted(servers, "server") + " cannot hold so many copies of a row " +
                      "beside it; at least " + std::to_string(job.cluster.replicas + 1) +
                      " must stay");
  }
  HDPS_RETURN_IF_ERROR(
      ValidateMembers(job, static_cast<uint32_t>(servers), static_cast<uint32_t>(workers)));
  const std::string text = Counted(servers, "server") + " and " + Counted(workers, "worker");
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

void Scaling::Dismiss(Rendezvous& rendezvous) {
  for (const Role role : {Role::kServer, Role::kWorker}) {
    const uint32_t count = role == Role::kServer ? servers_ : workers_;
    for (const PeerId peer : rendezvous.Dismiss(role, count)) dismissed_.insert(peer);
  }
  Done();
}

}  // namespace hdps
