// Who may take part: collects servers and workers until the cluster is complete, refuses the rest.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/shard_map.h"
#include "common/net/node.h"
#include "common/platform/process_watch.h"

namespace hdps {

struct JoinRefused;
struct JoinRequest;
struct View;

// The process of a member: its words for people, and its OwnProcessName() or "".
struct MemberProcess {
  std::string host, name;
};

// Why nobody else could use what a member of this role says of where it listens; empty: it could.
std::string WrongAddress(Role role, const std::string& address);

struct RendezvousOptions {
  uint32_t num_servers = 1, num_workers = 1;
  uint32_t num_shards = 1;  // At least num_servers.
  uint64_t job_digest = 0;
  uint32_t dead_after_ms = 10000;  // Silence after which a candidate gives up its place.
};

// Invariant: at most num_servers servers and num_workers workers are admitted, no two of a role
// with one rank. Once complete, members keep their ranks, but for Shrink(); a place that Vacate()
// frees goes to the next who asks, also for a rank that another has by now, and the cluster is
// complete again.
class Rendezvous {
 public:
  explicit Rendezvous(const RendezvousOptions& options)
      : options_(options), num_servers_(options.num_servers), num_workers_(options.num_workers) {}

  // A join request, new or repeated: nothing when `peer` is one of us, else why not. The message
  // names both sides of whatever does not agree.
  std::optional<JoinRefused> Admit(PeerId peer, const JoinRequest& request, TimeMs now);

  // The cluster as another process of the scheduler has formed it. Requires: nobody has asked yet.
  void Restore(const View& view, const std::map<PeerId, MemberProcess>& processes, TimeMs now);
  // Members whose process is known to have ended, each as long as it has its place.
  std::vector<PeerId> Ended();

  // Why the request has to wait, where nothing is wrong with it but that every place it could have
  // is taken: another member may be lost already, and nobody has noticed yet.
  std::optional<std::string> Full(const JoinRequest& request) const;

  // This member is lost: its rank is free.
  void Vacate(PeerId peer);
  // It was only silent, and is heard again: it has its place back, unless another has it by now.
  bool Return(PeerId peer, TimeMs now);
  // Goes on with the members of the role that are here, in the order of their ranks. Requires: at
  // least one is.
  void Shrink(Role role);
  uint32_t Count(Role role) const;  // Of those that are here.
  // The cluster is to have `count` members of the role. If those are more, newcomers are admitted
  // until they are here; if fewer, nobody is sent away.
  void OpenPlaces(Role role, uint32_t count);
  // Sends away those with the highest ranks until `count` are left; returns whom.
  std::vector<PeerId> Dismiss(Role role, uint32_t count);

  // Frees the places of candidates that went silent before the cluster was complete; says whose.
  std::vector<std::string> Expire(TimeMs now);
  void Heard(PeerId peer, TimeMs now);
  void ForgiveSilence(TimeMs gap);  // This process itself stood still for so long.

  bool complete() const { return complete_; }
  // Requires: complete(). Ranks that were asked for are kept; the others go by (address or host,
  // peer). Shards are spread evenly over the servers: in contiguous runs, or with the fewest moves
  // from where they were `before`.
  View FormView(ViewId id, const ShardMap* before = nullptr) const;

  // "1 of 4 workers (worker 3)"; empty when nobody is missing.
  std::string Missing() const;
  // "server 0 (host-a 71), worker (host-b 17)"; "nobody" when there is none.
  std::string Present() const;
  std::vector<PeerId> peers() const;
  // How many members of a role there are to be.
  uint32_t Places(Role role) const { return Quota(role); }
  bool Has(PeerId peer) const { return candidates_.contains(peer); }
  Role RoleOf(PeerId peer) const { return candidates_.at(peer).role; }  // Requires: Has(peer).
  TimeMs SilentFor(PeerId peer, TimeMs now) const { return now - candidates_.at(peer).heard; }
  // Both require: `peer` was admitted.
  const MemberProcess& ProcessOf(PeerId peer) const;
  std::string NameOf(PeerId peer) const;  // "worker (host-b 17)"

 private:
  struct Candidate {
    PeerId peer;
    Role role = Role::kWorker;
    int32_t rank = -1;  // Asked for, or -1; final once complete.
    std::string address;
    MemberProcess process;
    std::shared_ptr<ProcessWatch> watch;
    TimeMs heard = 0;
    bool settled = false;   // It was there when the cluster was complete: Vacate() alone ends it.
    bool returned = false;  // It was lost, and may be so again and come back again.
    std::string Name() const;
  };
  uint32_t Quota(Role role) const { return role == Role::kServer ? num_servers_ : num_workers_; }
  std::vector<const Candidate*> Of(Role role) const;
  const Candidate* OfRank(Role role, int32_t rank) const;  // Null: nobody has it.
  // What the operator has to mend; none where at most the place is taken.
  std::optional<JoinRefused> Mistake(const JoinRequest& request) const;
  std::optional<JoinRefused> Taken(const JoinRequest& request) const;
  void CheckComplete();
  void AssignRanks(Role role);
  std::string MissingOf(Role role) const;

  const RendezvousOptions options_;
  uint32_t num_servers_, num_workers_;  // That the cluster needs to be complete.
  std::map<PeerId, Candidate> candidates_;
  std::map<PeerId, Candidate> vacated_;  // Since the cluster was last complete.
  bool complete_ = false;
  bool was_complete_ = false;  // Ranks are given; a member that asks for one may have lost it.
};

}  // namespace hdps
