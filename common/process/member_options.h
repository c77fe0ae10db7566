// Builds a member's options of the membership from its identity and the job.
#pragma once

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/protocol/membership_client.h"

namespace hdps {

inline MembershipOptions MembershipOf(Role role, const NodeIdentity& identity, const Job& job) {
  MembershipOptions membership;
  membership.role = role;
  membership.identity = identity;
  membership.job_digest = JobDigest(job);
  membership.heartbeat_ms = job.cluster.heartbeat_ms;
  membership.scheduler_timeout_ms = int64_t{job.cluster.scheduler_timeout_s} * 1000;
  membership.rendezvous_timeout_s = job.cluster.rendezvous_timeout_s;
  return membership;
}

}  // namespace hdps
