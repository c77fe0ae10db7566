// Composes the scheduler's answer to status requests.
#pragma once

#include "common/job/job.h"
#include "common/net/node.h"
#include "common/protocol/messages.h"
#include "scheduler/members/admission.h"
#include "scheduler/members/member_changes.h"
#include "scheduler/plan/command_tracker.h"

namespace hdps {

// Returns the activity and the commands of each member, which members are missing, and for how
// long.
StatusReply StatusOfJob(const Job& job, const Rendezvous& rendezvous, const Admission& admission,
                        const MemberChanges& changes, const CommandTracker& tracker, TimeMs now);

}  // namespace hdps
