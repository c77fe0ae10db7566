// Composes the state of a job from its parts.
#include "scheduler/report/job_status.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/status_messages.h"
#include "scheduler/members/admission.h"
#include "scheduler/members/member_changes.h"
#include "scheduler/members/rendezvous.h"
#include "scheduler/members/replica_plan.h"
#include "scheduler/plan/command_tracker.h"
#include "scheduler/scheduler_options.h"

namespace hdps {
namespace {

// Adds which members are awaited, and for how much longer.
void AddAwaitedMembers(const ClusterSpec& cluster, const Rendezvous& rendezvous,
                       const Admission& admission, const MemberChanges& changes, TimeMs now,
                       StatusReply* status) {
  const Recovery& recovery = changes.recovery();
  const Scaling& scaling = changes.scaling();
  status->missing = rendezvous.Missing();
  const auto wait = [&](Want want, TimeMs since, int64_t patience_s) {
    status->want = want;
    status->missing_ms = now - since;
    if (patience_s > 0) {
      status->patience_ms = std::max<int64_t>(patience_s * 1000 - status->missing_ms, 1);
    }
  };
  if (!changes.formed()) {
    status->reason = admission.last_refusal();
    return wait(Want::kFirst, admission.gathers_since().value_or(now),
                cluster.rendezvous_timeout_s);
  }
  if (recovery.under_way()) {
    status->reason = recovery.names() + (recovery.num_lost() > 1 ? " are" : " is") +
                     " lost: " + recovery.first_cause();
    // Workers are waited for as long as it takes.
    const bool only_workers = rendezvous.Count(Role::kServer) == rendezvous.Places(Role::kServer) &&
                              rendezvous.Count(Role::kWorker) > 0;
    const bool gives_up = !only_workers || cluster.on_worker_loss != OnWorkerLoss::kWait;
    return wait(Want::kLost, recovery.since(), gives_up ? cluster.replace_after_s : 0);
  }
  if (changes.copies_missing_since()) {
    status->missing.clear();
    for (const auto& missing : MissingCopies(changes.members().view(), cluster.replicas)) {
      status->missing += (status->missing.empty() ? "" : "; ") + missing;
    }
    return wait(Want::kCopies, *changes.copies_missing_since(), cluster.replace_after_s);
  }
  if (scaling.under_way() && !scaling.ready(rendezvous)) {
    wait(Want::kNewcomers, scaling.asked_at(), 0);
  }
}

void TellMembers(const Membership& members, const std::vector<CommandTracker::Waiting>& waiting,
                 TimeMs now, StatusReply* status) {
  members.AddTo(status, now);
  const std::vector<PeerId> peers = members.all();
  for (const CommandTracker::Waiting& one : waiting) {
    const auto peer = std::ranges::find(peers, one.member);
    if (peer == peers.end()) continue;
    const auto member = status->members.begin() + (peer - peers.begin());
    // No phase waits for files that are written beside it.
    if (RunsBeside(one.command) && !member->pending_command.empty()) continue;
    member->pending_command = CommandKindName(one.command);
    member->pending_ms = now - one.since;
  }
}

}  // namespace

StatusReply StatusOfJob(const Job& job, const Rendezvous& rendezvous, const Admission& admission,
                        const MemberChanges& changes, const CommandTracker& tracker, TimeMs now) {
  StatusReply status;
  status.job = job.name;
  status.heartbeat_ms = job.cluster.heartbeat_ms;
  AddAwaitedMembers(job.cluster, rendezvous, admission, changes, now, &status);
  if (!changes.formed()) {
    status.state = "waiting for " + rendezvous.Missing() + "; here: " + rendezvous.Present();
    return status;
  }
  const Membership& members = changes.members();
  const std::vector<CommandTracker::Waiting> waiting = tracker.waiting();
  const auto of_phase = std::ranges::find_if(
      waiting, [](const CommandTracker::Waiting& one) { return !MovesAheadBy(one.command); });
  status.state =
      of_phase == waiting.end() ? "between two commands" : CommandKindName(of_phase->command);
  if (changes.recovery().under_way()) {
    status.state = changes.recovery().names() + " lost; waiting for " + rendezvous.Missing();
    if (changes.in_place()) status.state += "; the others go on";
  }
  for (const std::string& missing : MissingCopies(members.view(), job.cluster.replicas)) {
    status.state += "; " + missing;
  }
  for (const PeerId peer : members.all()) {
    const std::string& trouble = members.trouble(peer);
    if (!trouble.empty()) status.state += "; " + members.NameOf(peer) + " waits: " + trouble;
    const std::string& leaving = members.leaving(peer);
    if (!leaving.empty()) status.state += "; " + members.NameOf(peer) + " leaves: " + leaving;
  }
  TellMembers(members, waiting, now, &status);
  return status;
}

RowPlacesReply PlacesOfRows(const SchedulerOptions& options, const Rendezvous& rendezvous,
                            const MemberChanges& changes) {
  RowPlacesReply reply;
  if (!options.guests_read) {
    reply.code = Code::kInvalidArgument;
    reply.message = std::string("the scheduler does not tell where rows are: ") + kReadersNeedKeys;
    return reply;
  }
  if (!changes.formed()) {
    reply.code = Code::kUnavailable;
    reply.message = "there are no rows yet: the job waits for " + rendezvous.Missing();
    return reply;
  }
  const View& view = changes.members().view();
  reply.view = view.view;
  reply.servers = view.servers;
  reply.shards = view.shards;
  return reply;
}

JobReply TextOfJob(const SchedulerOptions& options) {
  JobReply reply;
  if (!options.guests_read) {
    reply.code = Code::kInvalidArgument;
    reply.message = std::string("the scheduler does not tell its job: ") + kReadersNeedKeys;
    return reply;
  }
  const std::string job = PrintJob(*options.job);
  reply.text = Buffer::CopyOf(std::span<const char>(job));
  return reply;
}

}  // namespace hdps
