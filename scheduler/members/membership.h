// The members of a formed cluster: names, times when last heard, and progress.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/view.h"
#include "common/telemetry/figure_layout.h"
#include "scheduler/members/cut_links.h"
#include "scheduler/members/rendezvous.h"

namespace hdps {

struct StatusReply;

// Invariant: the members are those of the newest view. Within one view a member's reported clock
// and examples never go back, in whatever order heartbeats arrive; its staleness never goes back at
// all.
class Membership {
 public:
  explicit Membership(TimeMs dead_after_ms) : dead_after_ms_(dead_after_ms) {}

  // Takes the members of `view`. `processes`: of its peers. If the view is a restart, members that
  // stay have no progress in it yet; new members count as heard at `now`.
  void Enter(View view, const std::map<PeerId, MemberProcess>& processes, TimeMs now);

  const View& view() const { return view_; }
  bool Has(PeerId peer) const { return members_.contains(peer); }
  const std::string& NameOf(PeerId peer) const;  // Such as "worker 1 (host-a 4711)".
  const MemberProcess& ProcessOf(PeerId peer) const { return members_.at(peer).process; }
  bool released(PeerId peer) const { return members_.at(peer).released; }
  std::optional<uint32_t> WorkerRank(PeerId peer) const;  // None for a server.
  std::vector<PeerId> servers() const;                    // The primaries of all groups, each once.
  // All servers that hold rows, including those with only copies.
  std::vector<PeerId> holders() const;
  std::vector<PeerId> workers() const;
  std::vector<PeerId> all() const;
  // Returns whether a heartbeat of this number is newer than all that were heard. Requires:
  // Has(peer).
  bool IsNewer(PeerId peer, uint64_t heartbeat) const {
    return heartbeat > members_.at(peer).newest;
  }

  void Heard(PeerId peer, TimeMs now);
  // Takes a heartbeat. Progress reported from a view before the last restart is ignored.
  void OnHeartbeat(PeerId peer, const Heartbeat& heartbeat, TimeMs now);
  // Notes that a member asks again for the view, although it was sent.
  void OnJoinAgain(PeerId peer, TimeMs now);
  void ForgiveSilence(TimeMs gap);  // After a standstill of this process.
  void Release(PeerId peer);        // It has finished, so its silence is no failure.
  // Counts the member as lost from now on, whatever is heard of it; `how` says why.
  void GiveUp(PeerId peer, const std::string& how);
  const std::string& given_up(PeerId peer) const { return members_.at(peer).given_up; }
  // Notes that the member was told to leave, and why.
  void Leaves(PeerId peer, const std::string& why) { members_.at(peer).leaving = why; }
  const std::string& leaving(PeerId peer) const { return members_.at(peer).leaving; }
  // Returns the members that wait to be let go.
  std::vector<PeerId> leavers() const;
  // Is true if the member is heard but does not receive the answers.
  bool deaf(PeerId peer) const { return members_.at(peer).deaf; }
  const std::string& trouble(PeerId peer) const { return members_.at(peer).trouble; }

  TimeMs SilentFor(PeerId peer, TimeMs now) const;
  // Returns the members that have been silent or deaf for too long, and those given up.
  std::vector<PeerId> Lost(TimeMs now) const;
  // Returns, for each worker that is heard, the servers that it has not heard for long.
  std::vector<LinkReport> LinkReports() const;
  const std::string& PlaceOf(PeerId peer) const;  // Such as "worker 1", whichever process has it.

  // Adds the view and the progress of each member.
  void AddTo(StatusReply* status, TimeMs now) const;
  // The work of all workers together since their processes started.
  struct Progress {
    Clock clock = 0;  // The slowest worker's clock.
    uint64_t examples = 0;
    double loss_sum = 0;
    double epoch_progress = 0;  // The slowest worker's progress.
  };
  Progress progress() const;
  // Returns the figures of the member's last heartbeat that had any; null: none had. They are as
  // long as the sender made them, and count from the start of its process.
  std::shared_ptr<const Readings> readings(PeerId peer) const { return members_.at(peer).readings; }
  Clock WorkerClock(uint32_t rank) const;  // Requires: rank < workers.
  const Activity& ActivityOf(PeerId peer) const { return members_.at(peer).activity; }
  // Is true if no worker has more examples, as their own programs say (Heartbeat::finished).
  bool AllFinished() const;
  // Is true if a worker asks for a checkpoint at a clock in (after, upto]; -1 is before all clocks.
  bool WantsCheckpoint(Clock after, Clock upto) const;
  uint64_t staleness_max() const;
  // Takes a worker's report on its cached rows; cache() is the sum over all workers.
  void OnCache(PeerId peer, const CacheTally& tally);
  CacheTally cache() const;

 private:
  struct Entry {
    std::string name;
    MemberProcess process;
    std::optional<uint32_t> worker_rank;
    TimeMs heard = 0;
    bool released = false;
    Heartbeat latest;
    std::string place, given_up, leaving;
    // Numbers of heartbeats: the newest one, and the newest whose answer the member has received.
    uint64_t newest = 0, answered = 0;
    TimeMs answered_at = 0;  // When `answered` was reported; later answers have not arrived.
    bool deaf = false;
    std::string trouble;
    Activity activity;
    std::vector<SilentServer> silent;
    std::shared_ptr<const Readings> readings;
  };
  // Returns the worker that had the entry's rank; null for a server, or if there was none.
  static const Entry* WorkerOf(const std::map<PeerId, Entry>& before, const Entry& entry);

  const TimeMs dead_after_ms_;
  View view_;
  ViewId restarted_;            // The first view since the last restart.
  uint64_t staleness_max_ = 0;  // Maximum over members that have left.
  std::map<PeerId, Entry> members_;
};

}  // namespace hdps
