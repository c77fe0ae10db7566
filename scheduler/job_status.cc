// What a scheduler tells those who ask how its job is.
#include <algorithm>
#include <string>

#include "scheduler/scheduler_inside.h"

namespace hdps {

void SchedulerNode::Impl::TellWanted(StatusReply* status) const {
  const ClusterSpec& cluster = job.cluster;
  status->missing = rendezvous.Missing();
  const auto wait = [&](Want want, TimeMs since, int64_t patience_s) {
    status->want = want;
    status->missing_ms = now - since;
    if (patience_s > 0) {
      status->patience_ms = std::max<int64_t>(patience_s * 1000 - status->missing_ms, 1);
    }
  };
  if (!members) {
    status->reason = refused_last;
    return wait(Want::kFirst, began.value_or(now), cluster.rendezvous_timeout_s);
  }
  if (recovery.under_way()) {
    status->reason = recovery.names() + (recovery.num_lost() > 1 ? " are" : " is") +
                     " lost: " + recovery.first_cause();
    return wait(Want::kLost, recovery.since(), cluster.replace_after_s);
  }
  if (copies_missing_since) {
    status->missing.clear();
    for (const std::string& missing : MissingCopies(members->view(), cluster.replicas)) {
      status->missing += (status->missing.empty() ? "" : "; ") + missing;
    }
    return wait(Want::kCopies, *copies_missing_since, cluster.replace_after_s);
  }
  if (scaling.under_way() && !scaling.ready(rendezvous)) {
    wait(Want::kNewcomers, scale_asked_at, 0);
  }
}

void SchedulerNode::Impl::On(PeerId from, const StatusRequest&, const Frame& frame) {
  StatusReply status;
  status.job = job.name;
  status.heartbeat_ms = job.cluster.heartbeat_ms;
  TellWanted(&status);
  if (members) {
    const std::vector<CommandTracker::Waiting> waiting = tracker.waiting();
    status.state = waiting.empty() ? "between two commands" : CommandKindName(waiting[0].command);
    if (recovery.under_way()) {
      status.state = recovery.names() + " lost; waiting for " + rendezvous.Missing();
    }
    for (const auto& missing : MissingCopies(members->view(), job.cluster.replicas)) {
      status.state += "; " + missing;
    }
    for (const PeerId peer : members->all()) {
      const std::string& trouble = members->trouble(peer);
      if (!trouble.empty()) status.state += "; " + members->NameOf(peer) + " waits: " + trouble;
    }
    members->AddTo(&status, now);
    for (const CommandTracker::Waiting& one : waiting) {
      const auto member = std::ranges::find(status.members, one.member, &MemberStatus::peer);
      // No phase waits for files that are written beside it.
      if (member == status.members.end()) continue;
      if (one.command == CommandKind::kAwaitSaved && !member->told.empty()) continue;
      member->told = CommandKindName(one.command);
      member->told_ms = now - one.since;
    }
  } else {
    status.state = "waiting for " + rendezvous.Missing() + "; here: " + rendezvous.Present();
  }
  Send(from, status, frame.header.request_id);
}

}  // namespace hdps
