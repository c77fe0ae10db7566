// Composes the scheduler's answer to status requests.
#pragma once

#include "common/net/node.h"

namespace hdps {

struct Job;
struct StatusReply;
class Admission;
class CommandTracker;
class MemberChanges;
class Rendezvous;

// Returns the activity and the commands of each member, which members are missing, and for how
// long.
StatusReply StatusOfJob(const Job& job, const Rendezvous& rendezvous, const Admission& admission,
                        const MemberChanges& changes, const CommandTracker& tracker, TimeMs now);

}  // namespace hdps
