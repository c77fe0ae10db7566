// What a scheduler tells those who ask how its job is.
#pragma once

#include "common/net/node.h"

namespace hdps {

struct Job;
struct StatusReply;
class Admission;
class CommandTracker;
class MemberChanges;
class Rendezvous;

// What each member says it is at, and what it was told; who is missing, and how long that goes on.
StatusReply StatusOfJob(const Job& job, const Rendezvous& rendezvous, const Admission& admission,
                        const MemberChanges& changes, const CommandTracker& tracker, TimeMs now);

}  // namespace hdps
