// Who comes: has a place, is refused, or stands by for one; and the wait for the first cluster.
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

// Those who stand by find every place taken, and wait for a loss that nobody has noticed yet. A
// process that is started in the place of one that died may come before the death is noticed, also
// before the cluster is complete.
//
// Invariant: nobody both has a place and stands by; at most kStandingByMax stand by.
class Admission {
 public:
  static constexpr size_t kStandingByMax = 64;

  // `taken_is_final`: SchedulerSabotage's.
  Admission(const ClusterSpec& cluster, Rendezvous& rendezvous, bool taken_is_final)
      : cluster_(cluster), rendezvous_(rendezvous), taken_is_final_(taken_is_final) {}

  enum class Stage : uint8_t { kGathering, kUnderWay, kEnding };
  struct Answer {
    std::optional<JoinRefused> refused;  // None: it has a place, by this request or from before.
    bool newcomer = false;               // By this request.
    std::string line;                    // For people, of what anybody can cause; or empty.
  };
  // Once the job is under way, whoever asks for a rank is a member that was started again, and
  // another has its place by now: it may stand by for as long as the job goes on. In the end
  // everyone is told that the job is done: nobody's place is given away any more.
  Answer OnJoin(PeerId peer, const JoinRequest& request, Stage stage, TimeMs now);

  // The wait for the first cluster, at each tick until it is complete.
  MemberStep Gather(TimeMs now);
  // None before the first tick.
  const std::optional<TimeMs>& gathers_since() const { return began_; }
  // The last refusal, for people; empty: nobody was refused.
  const std::string& last_refusal() const { return last_refusal_; }

  // A view was formed: the patience with those who stand by for its places is counted from here.
  void OnView(TimeMs now);
  // This process itself stood still for so long: losses are noticed so much later.
  void ForgiveSilence(TimeMs gap);
  std::vector<PeerId> standing_by() const;

 private:
  struct StandBy {
    TimeMs since = 0, heard = 0;
  };
  TimeMs patience_ms() const {
    return TimeMs{cluster_.dead_after_ms} + 2 * TimeMs{cluster_.heartbeat_ms};
  }
  // Every place that `peer` could have is taken.
  bool MayStandBy(PeerId peer, const JoinRequest& request, Stage stage, TimeMs now);

  const ClusterSpec cluster_;
  Rendezvous& rendezvous_;
  const bool taken_is_final_;
  std::map<PeerId, StandBy> standing_by_;
  std::string last_refusal_;
  std::optional<TimeMs> began_;  // The first tick.
};

}  // namespace hdps
