// What a server's or worker's membership follows from: who it is, and the job.
#pragma once

#include "common/job/job.h"
#include "common/protocol/membership_client.h"

namespace hdps {

inline MembershipOptions MembershipOf(Role role, const NodeIdentity& identity, const Job& job) {
  MembershipOptions membership;
  membership.role = role;
  membership.identity = identity;
  membership.job_digest = JobDigest(job);
  membership.heartbeat_ms = job.cluster.heartbeat_ms;
  membership.dead_after_ms = job.cluster.dead_after_ms;
  membership.rendezvous_timeout_s = job.cluster.rendezvous_timeout_s;
  return membership;
}

}  // namespace hdps
