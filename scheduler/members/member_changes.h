// The members of a job and their changes: losses, replacements, and other numbers of members.
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
struct LeaveRequest;
struct ScaleRequest;

// Decides what the job is to do about its members; the caller does it.
//
// Invariant: from the first Enter() on, the members are those of the view entered last. A view that
// is returned is entered next, or never.
class MemberChanges {
 public:
  // `fewer_at_once`: as in SchedulerSabotage.
  MemberChanges(std::shared_ptr<const Job> job, Rendezvous& rendezvous, bool fewer_at_once);

  bool formed() const { return members_.has_value(); }
  // Both require: formed().
  Membership& members() { return *members_; }
  const Membership& members() const { return *members_; }
  bool Knows(PeerId peer) const;  // Is a member, or has a place before the first view.
  std::string NameOf(PeerId peer) const;

  // Returns the first view. Requires: the cluster is complete.
  View First() const;
  // Returns notices about the complete cluster, once its view was entered.
  std::vector<std::string> Complete() const;
  // Makes the members those of `view`.
  void Enter(View view, TimeMs now);

  // Returns the Abort for a `peer` that sends heartbeats without being a member; none if it is one.
  std::optional<Abort> Refusal(PeerId peer) const;
  struct Heard {
    std::string warning;  // For the operator; empty: none.
    std::vector<std::string> notices;
  };
  // Takes a member's heartbeat. A member that was only silent gets its place back if it is still
  // free.
  Heard OnHeartbeat(PeerId peer, const Heartbeat& heartbeat, TimeMs now);
  // Returns a notice about a process that has joined since the first view; may be empty.
  std::string Joined(PeerId peer) const;

  struct GivenUp {
    std::string notice;  // For the operator; empty: none.
    // Set if the job ends with it; otherwise only the member is lost.
    std::optional<JobFailure> end;
  };
  // Gives `peer` up because it cannot go on or cannot be reached: it is lost with the next tick. If
  // processes in its place fail again and again, the job ends. `mistake_status`: the exit status if
  // the member blames the operator or the data; 0: it does not.
  GivenUp GiveUp(PeerId peer, const std::string& how, int mistake_status, const JobStand& stand);

  struct Parting {
    std::string notice = {};  // For the operator; empty: none.
    bool goes = false;        // It goes without having been let go.
  };
  // Takes the wish of a process to leave; Refusal() says whether it has been let go before. A
  // member is let go by Next(), when nothing that it has is lost with it. An eviction is no
  // failure, however often it comes.
  Parting OnLeave(PeerId peer, const LeaveRequest& request);
  // Gives `leavers` up, who are lost next; returns what each is told. `handed_over`: no step is
  // lost with them.
  Abort LetGo(const std::vector<PeerId>& leavers, bool handed_over);

  // A member that sends heartbeats but is cut off from the others, and a description.
  struct CutOff {
    PeerId peer;
    std::string how;
  };
  std::vector<CutOff> FindCutOff() const;
  // Returns the members that have been silent or deaf for too long, were given up, or whose process
  // has ended.
  std::vector<PeerId> FindLost(TimeMs now);
  // Handles the loss of members: either other servers that hold their rows take over, or the job
  // stands until replacements have come.
  AfterLoss Lose(const std::vector<PeerId>& lost, const JobStand& stand, TimeMs now);

  // Is true while members are waited for or leave; Next() says what the job does about it. A job
  // that is quiet without a reason goes on.
  bool under_way() const {
    return recovery_.under_way() || scaling_.under_way() || !members_->leavers().empty();
  }
  MemberStep Next(const JobStand& stand, TimeMs now);
  // Returns a step back to the newest checkpoint, in the next view.
  MemberStep GoBack(TimeMs now);
  // Called after a view was formed for losses. While copies of rows are missing, it seeks another
  // server, as if the job were being scaled to its present size; a scaling that was asked for goes
  // on.
  void SeekServerForCopies(TimeMs now);

  Scaling::Answer OnRequest(PeerId from, const ScaleRequest& request, TimeMs now);
  // Continues a scaling that a former scheduler process had accepted; 0: none.
  void ContinueScaling(uint32_t servers, uint32_t workers);

  const Recovery& recovery() const { return recovery_; }
  // Is true while only workers are missing whose steps others will take up; the job goes on.
  bool in_place() const { return recovery_.under_way() && back_because_.empty(); }
  const Scaling& scaling() const { return scaling_; }
  // Since when some rows have had fewer copies than they should, without a new server; none: no
  // copy is missing.
  const std::optional<TimeMs>& copies_missing_since() const { return copies_missing_since_; }

 private:
  std::string HowLost(PeerId peer, TimeMs now) const;  // Such as "its process has ended".
  AfterLoss Promote(ViewAfterLoss after, const std::vector<PeerId>& lost, TimeMs now);
  // ---- Lost workers that are replaced in place, or not.
  // Returns why not; empty: they are.
  std::string WhyAllGoBack(const std::vector<PeerId>& lost, const JobStand& stand) const;
  void JudgeLoss(const std::vector<PeerId>& lost, const JobStand& stand);
  // Returns whether all places of workers are taken, and the processes in them can take up steps.
  bool CanReplace(const JobStand& stand);
  MemberStep Replace();

  MemberStep NextOfRecovery(const JobStand& stand, TimeMs now);
  MemberStep NextOfScaling(const JobStand& stand, TimeMs now);
  // Returns nothing if nobody is to leave now.
  std::optional<MemberStep> NextOfLeaving(const JobStand& stand);
  // Returns whether copies have been missing for so long that the remaining servers should make
  // those that they can.
  bool CopiesMayBeAtOthers(TimeMs now) const;
  TimeMs replace_after_ms() const;

  const std::shared_ptr<const Job> job_;
  const bool fewer_at_once_;
  Rendezvous& rendezvous_;
  std::optional<Membership> members_;
  MemberFailures failures_;
  Recovery recovery_;
  std::string back_because_;  // Why all go back after the losses at hand; empty: they do not.
  Scaling scaling_;
  std::optional<TimeMs> copies_missing_since_;
  std::optional<Clock> saved_for_leavers_;  // The clock of a save that leavers asked for.
};

}  // namespace hdps
