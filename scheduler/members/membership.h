// The members of a formed cluster: their names, when they were last heard, how far they are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/view.h"
#include "scheduler/members/cut_links.h"
#include "scheduler/members/rendezvous.h"

namespace hdps {

struct StatusReply;

// Invariant: the members are those of the newest view. Within one view a member's reported clock
// and examples never go back, whatever order heartbeats come in; its staleness never does.
class Membership {
 public:
  explicit Membership(TimeMs dead_after_ms) : dead_after_ms_(dead_after_ms) {}

  // `processes`: of the peers of `view`. Who stays has done nothing yet in
  // it, if the view is a restart; who is new has been heard at `now`.
  void Enter(View view, const std::map<PeerId, MemberProcess>& processes, TimeMs now);

  const View& view() const { return view_; }
  bool Has(PeerId peer) const { return members_.contains(peer); }
  const std::string& NameOf(PeerId peer) const;  // "worker 1 (host-a 4711)"
  const MemberProcess& ProcessOf(PeerId peer) const { return members_.at(peer).process; }
  bool released(PeerId peer) const { return members_.at(peer).released; }
  std::optional<uint32_t> WorkerRank(PeerId peer) const;  // None for a server.
  std::vector<PeerId> servers() const;                    // The primaries of all groups, each once.
  std::vector<PeerId> holders() const;  // Those, and servers that only have copies.
  std::vector<PeerId> workers() const;
  std::vector<PeerId> all() const;
  // Whether a heartbeat of this number is newer than those that were heard. Requires: Has(peer).
  bool IsNewer(PeerId peer, uint64_t heartbeat) const {
    return heartbeat > members_.at(peer).newest;
  }

  void Heard(PeerId peer, TimeMs now);
  // What it says of a view before the last restart is of work that counts no more.
  void OnHeartbeat(PeerId peer, const Heartbeat& heartbeat, TimeMs now);
  // It asks for the view again, although that was sent.
  void OnJoinAgain(PeerId peer, TimeMs now);
  void ForgiveSilence(TimeMs gap);  // This process itself stood still for so long.
  void Release(PeerId peer);        // It has finished: its silence is no failure.
  // It is lost from now on, whatever is heard of it: `how`, for people.
  void GiveUp(PeerId peer, const std::string& how);
  const std::string& given_up(PeerId peer) const { return members_.at(peer).given_up; }
  // It speaks, and does not hear what it is answered.
  bool deaf(PeerId peer) const { return members_.at(peer).deaf; }
  const std::string& trouble(PeerId peer) const { return members_.at(peer).trouble; }

  TimeMs SilentFor(PeerId peer, TimeMs now) const;
  // Those that have been silent or deaf for too long, and those given up.
  std::vector<PeerId> Lost(TimeMs now) const;
  // Of the workers that are well: the servers that they have long not heard.
  std::vector<LinkReport> LinkReports() const;
  const std::string& PlaceOf(PeerId peer) const;  // "worker 1", whoever has it.

  // The view, and how far each member is.
  void AddTo(StatusReply* status, TimeMs now) const;
  // What the workers together have done since their processes started.
  struct Progress {
    Clock clock = 0;  // Of the slowest.
    uint64_t examples = 0;
    double loss_sum = 0;
    double epoch_progress = 0;  // Of the slowest.
  };
  Progress progress() const;
  Clock WorkerClock(uint32_t rank) const;  // Requires: rank < workers.
  uint64_t staleness_max() const;
  // What a worker said of the rows it keeps, beside its heartbeats; and the sum over all.
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
    std::string place, given_up;
    // Of its heartbeats: the newest one, and the newest of which it has heard the answer.
    uint64_t newest = 0, answered = 0;
    TimeMs answered_at = 0;  // That was told; answers that were sent since have not come.
    bool deaf = false;
    std::string trouble;
    Activity activity;
    std::vector<SilentServer> silent;
  };
  const TimeMs dead_after_ms_;
  View view_;
  ViewId restarted_;            // The first view since the last restart.
  uint64_t staleness_max_ = 0;  // Of members that are gone.
  std::map<PeerId, Entry> members_;
};

}  // namespace hdps
