// Composes the scheduler's answers to callers that are no members.
#pragma once

#include "common/net/node.h"

namespace hdps {

struct Job;
struct JobReply;
struct RowPlacesReply;
struct SchedulerOptions;
struct StatusReply;
class Admission;
class CommandTracker;
class MemberChanges;
class Rendezvous;

// Returns the activity and the commands of each member, which members are missing, and for how
// long.
StatusReply StatusOfJob(const Job& job, const Rendezvous& rendezvous, const Admission& admission,
                        const MemberChanges& changes, const CommandTracker& tracker, TimeMs now);

// Returns the servers of the newest view and their shards; or why they are not told.
RowPlacesReply PlacesOfRows(const SchedulerOptions& options, const Rendezvous& rendezvous,
                            const MemberChanges& changes);
// Returns the text of the job; or why it is not told.
JobReply TextOfJob(const SchedulerOptions& options);

}  // namespace hdps
