// The members of the job and what becomes of them: losses, those who come for them, other numbers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/net/node.h"
#include "scheduler/members/member_failures.h"
#include "scheduler/members/member_step.h"
#include "scheduler/members/membership.h"
#include "scheduler/members/recovery.h"
#include "scheduler/members/rendezvous.h"
#include "scheduler/members/replica_plan.h"
#include "scheduler/members/scaling.h"

namespace hdps {

struct Abort;
struct Heartbeat;
struct Job;
struct ScaleRequest;

// Says what the job is to do about its members, and leaves the doing to the caller.
//
// Invariant: there are members from the first Enter() on, those of the view entered last. A view
// that it returns is entered next, or never.
class MemberChanges {
 public:
  // `fewer_at_once`: SchedulerSabotage's.
  MemberChanges(std::shared_ptr<const Job> job, Rendezvous& rendezvous, bool fewer_at_once);

  bool formed() const { return members_.has_value(); }
  // Both require: formed().
  Membership& members() { return *members_; }
  const Membership& members() const { return *members_; }
  bool Knows(PeerId peer) const;  // A member, or before the first view somebody with a place.
  std::string NameOf(PeerId peer) const;

  // The first view. Requires: the cluster is complete.
  View First() const;
  // What people are told when it was entered.
  std::vector<std::string> Complete() const;
  // The members are those of `view` from now on.
  void Enter(View view, TimeMs now);

  // Why `peer`, which beats, is told to end; none: it is a member.
  std::optional<Abort> Refusal(PeerId peer) const;
  struct Heard {
    std::string warning;  // For people; empty: none.
    std::vector<std::string> notices;
  };
  // A member has beaten. It gets its place back where it was only silent, and the place is free.
  Heard OnHeartbeat(PeerId peer, const Heartbeat& heartbeat, TimeMs now);
  // What people are told of one who has come since the first view; empty: nothing.
  std::string Joined(PeerId peer) const;

  struct GivenUp {
    std::string notice;             // For people; empty: nothing.
    std::optional<JobFailure> end;  // The job ends with it; none: the member alone is lost.
  };
  // `peer` cannot go on, or nobody reaches it: it is lost with the next tick. When those in its
  // place have failed again and again, the job ends. `mistake_status`: the member says that the
  // operator or the data is to blame, and the job has to end with it; 0: it does not.
  GivenUp GiveUp(PeerId peer, const std::string& how, int mistake_status, const JobStand& stand);

  // Members that beat, and are cut off from the others: who, and how that is told.
  struct CutOff {
    PeerId peer;
    std::string how;
  };
  std::vector<CutOff> FindCutOff() const;
  // Those that are silent or deaf for too long, given up, or whose process has ended.
  std::vector<PeerId> FindLost(TimeMs now);
  // Others that hold the rows of `lost` take over, or the job stands until others have come.
  AfterLoss Lose(const std::vector<PeerId>& lost, const JobStand& stand, TimeMs now);

  // Members are waited for: Next() says what the job does about it.
  bool under_way() const { return recovery_.under_way() || scaling_.under_way(); }
  MemberStep Next(const JobStand& stand, TimeMs now);
  // Everybody loads the newest checkpoint, in the next view.
  MemberStep GoBack(TimeMs now);
  // Behind a view that was formed for losses: while copies of rows are missing, another server is
  // waited for, as if the job were to be scaled to as many as it has; what was asked for goes on.
  void SeekMembers(TimeMs now);

  Scaling::Answer OnRequest(PeerId from, const ScaleRequest& request, TimeMs now);
  // What another process of the scheduler had accepted; 0: nothing.
  void ContinueScaling(uint32_t servers, uint32_t workers);

  const Recovery& recovery() const { return recovery_; }
  const Scaling& scaling() const { return scaling_; }
  // Since when some rows have fewer copies than they should, and nobody has come; none: they have
  // all.
  const std::optional<TimeMs>& copies_missing_since() const { return copies_missing_since_; }

 private:
  std::string HowLost(PeerId peer, TimeMs now) const;  // For people: "its process has ended".
  AfterLoss Promote(ViewAfterLoss after, const std::vector<PeerId>& lost, TimeMs now);
  MemberStep NextOfRecovery(const JobStand& stand, TimeMs now);
  MemberStep NextOfScaling(const JobStand& stand, TimeMs now);
  // Nobody has come for so long that those who are left are to make the copies that they can.
  bool CopiesMayBeAtOthers(TimeMs now) const;
  TimeMs replace_after_ms() const;

  const std::shared_ptr<const Job> job_;
  const bool fewer_at_once_;
  Rendezvous& rendezvous_;
  std::optional<Membership> members_;
  MemberFailures failures_;
  Recovery recovery_;
  Scaling scaling_;
  std::optional<TimeMs> copies_missing_since_;
};

}  // namespace hdps
