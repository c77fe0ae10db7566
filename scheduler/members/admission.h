// Answers join requests: admits, refuses, or lets a process stand by; and waits for the first
// cluster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/job/spec/cluster_spec.h"
#include "common/net/node.h"
#include "common/protocol/membership_messages.h"
#include "scheduler/members/member_step.h"
#include "scheduler/members/rendezvous.h"

namespace hdps {

// A process stands by if every place it could have is taken and a member may have died unnoticed. A
// process that replaces a dead one may come before the death is noticed, also before the cluster is
// complete.
//
// Invariant: no process both has a place and stands by; at most kStandingByMax stand by.
class Admission {
 public:
  static constexpr size_t kStandingByMax = 64;

  // `taken_is_final`: as in SchedulerSabotage.
  Admission(const ClusterSpec& cluster, Rendezvous& rendezvous, bool taken_is_final)
      : cluster_(cluster), rendezvous_(rendezvous), taken_is_final_(taken_is_final) {}

  enum class Stage : uint8_t { kGathering, kUnderWay, kEnding };
  struct Answer {
    std::optional<JoinRefused> refused;  // None: it has a place, by this request or from before.
    bool newcomer = false;               // It got its place by this request.
    std::string line;  // A notice, rate-limited because anybody can cause it; or empty.
  };
  // A process that asks for a rank is a member whose place another process has taken; it may stand
  // by as long as the job goes on. Before the first view this holds unless the other has asked for
  // the same rank, which is a mistake. At the end of the job no place is given away any more, so
  // that everyone is told that the job is done.
  Answer OnJoin(PeerId peer, const JoinRequest& request, Stage stage, TimeMs now);

  // Advances the wait for the first cluster; called at each tick until it is complete.
  MemberStep Gather(TimeMs now);
  // Returns the first tick; none before it.
  const std::optional<TimeMs>& gathers_since() const { return began_; }
  // The text of the last refusal; empty if there was none.
  const std::string& last_refusal() const { return last_refusal_; }

  // Restarts the time limit of processes that stand by, when a view was formed.
  void OnView(TimeMs now);
  // Accounts for a standstill of this process of `gap`: losses are noticed that much later.
  void ForgiveSilence(TimeMs gap);
  std::vector<PeerId> standing_by() const;

 private:
  struct StandBy {
    TimeMs since = 0, heard = 0;
  };
  TimeMs patience_ms() const {
    return TimeMs{cluster_.dead_after_ms} + 2 * TimeMs{cluster_.heartbeat_ms};
  }
  // Returns whether `peer` may stand by because every place it could have is taken.
  bool MayStandBy(PeerId peer, const JoinRequest& request, Stage stage, TimeMs now);

  const ClusterSpec cluster_;
  Rendezvous& rendezvous_;
  const bool taken_is_final_;
  std::map<PeerId, StandBy> standing_by_;
  std::string last_refusal_;
  std::optional<TimeMs> began_;  // Time of the first tick.
};

}  // namespace hdps
