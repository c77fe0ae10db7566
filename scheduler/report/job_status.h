// What a scheduler tells those who ask how its job is.
#pragma once

#include "common/job/job.h"
#include "common/net/node.h"
#include "common/protocol/messages.h"
#include "scheduler/members/admission.h"
#include "scheduler/members/member_changes.h"
#include "scheduler/plan/command_tracker.h"

namespace hdps {

// What each member says it is at, and what it was told; who is missing, and how long that goes on.
StatusReply StatusOfJob(const Job& job, const Rendezvous& rendezvous, const Admission& admission,
                        const MemberChanges& changes, const CommandTracker& tracker, TimeMs now);

}  // namespace hdps
