// Collects servers and workers until the cluster is complete, and refuses the rest.
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
struct Member;
struct View;

// The process of a member: its description, and its OwnProcessName() or "".
struct MemberProcess {
  std::string host, name;
  bool records = false;  // As in JoinRequest.
};

// Returns why an address that a member of this role gives is of no use to others; empty if it is
// fine.
std::string WrongAddress(Role role, const std::string& address);

// Returns how messages call a process: by its description, or by its role if it gave none.
std::string NameOfProcess(Role role, const std::string& host);

struct RendezvousOptions {
  uint32_t num_servers = 1, num_workers = 1;
  uint32_t num_shards = 1;  // At least num_servers.
  uint64_t job_digest = 0;
  uint32_t dead_after_ms = 10000;  // A candidate that is silent for longer loses its place.
  ShardMap placement = {};         // Shards of the first view; empty: they are placed evenly.
};

// Invariant: at most num_servers servers and num_workers workers are admitted, and no two of one
// role have the same rank. Once the cluster is complete, members keep their ranks, except in
// Shrink(). A place that Vacate() frees goes to the next process that asks, even if it asks for a
// rank that another has taken meanwhile, and the cluster is complete again.
class Rendezvous {
 public:
  explicit Rendezvous(const RendezvousOptions& options)
      : options_(options), num_servers_(options.num_servers), num_workers_(options.num_workers) {}

  // Takes a join request, new or repeated. Returns nothing if `peer` is admitted; otherwise why
  // not, in a message with both sides of any disagreement.
  std::optional<JoinRefused> Admit(PeerId peer, const JoinRequest& request, TimeMs now);

  // Restores the cluster that a former scheduler process formed. Requires: no process has asked
  // yet.
  void Restore(const View& view, const std::map<PeerId, MemberProcess>& processes, TimeMs now);
  // Returns the members whose process is known to have ended, as long as they have their places.
  std::vector<PeerId> Ended();

  // Returns why the request has to wait; none if it does not. A request waits if only every place
  // it could have is taken: another member may be lost already, unnoticed.
  std::optional<std::string> Full(const JoinRequest& request) const;

  // Returns whether a present process has this rank; before the first view, has asked for it.
  bool HasRank(Role role, int32_t rank) const { return OfRank(role, rank) != nullptr; }

  // Frees the rank of a lost member.
  void Vacate(PeerId peer);
  // Gives a member that was only silent its place back, or another free one if another process has
  // it by now. Returns false if no place is free.
  bool Return(PeerId peer, TimeMs now);
  // Goes on with only the present members of the role, in the order of their ranks. Requires: there
  // is at least one.
  void Shrink(Role role);
  uint32_t Count(Role role) const;  // Number of present members.
  // Sets the number of members of the role. If it grows, new members are admitted until they are
  // complete; if it shrinks, no member is removed.
  void OpenPlaces(Role role, uint32_t count);
  // Removes the members with the highest ranks until `count` are left; returns those removed.
  std::vector<PeerId> Dismiss(Role role, uint32_t count);

  // Notes that the members are those of `view` now: their silence is judged elsewhere, and members
  // of the view before it that are not among them do not come back.
  void Settle(const View& view);
  // Frees the places of processes that went silent before a view had them; returns their names.
  std::vector<std::string> Expire(TimeMs now);
  void Heard(PeerId peer, TimeMs now);
  void ForgiveSilence(TimeMs gap);  // After a standstill of this process.

  bool complete() const { return complete_; }
  // Returns whether every place of a worker is taken; all workers have ranks then.
  bool FillWorkers();
  // Returns the workers by rank. Requires: FillWorkers().
  std::vector<Member> Workers() const;
  // Returns the view of the complete cluster. Requires: complete(). Requested ranks are kept; the
  // others go by (address or host, peer). Shards are spread evenly over the servers: in contiguous
  // runs, or with the fewest moves from `before`.
  View FormView(ViewId id, const ShardMap* before = nullptr) const;

  // Returns what is missing, such as "1 of 4 workers (worker 3)"; empty if nothing is.
  std::string Missing() const;
  // Returns who is present, such as "server 0 (host-a 71), worker (host-b 17)"; or "nobody".
  std::string Present() const;
  std::vector<PeerId> peers() const;
  // Returns whether a server has said that it records the order of requests, to this process of the
  // scheduler or to a former one.
  bool recorded() const { return recorded_; }
  // Returns the intended number of members of a role.
  uint32_t Places(Role role) const { return Quota(role); }
  bool Has(PeerId peer) const { return candidates_.contains(peer); }
  Role RoleOf(PeerId peer) const { return candidates_.at(peer).role; }  // Requires: Has(peer).
  TimeMs SilentFor(PeerId peer, TimeMs now) const { return now - candidates_.at(peer).heard; }
  // Both require: `peer` was admitted.
  const MemberProcess& ProcessOf(PeerId peer) const;
  std::string NameOf(PeerId peer) const;  // Such as "worker (host-b 17)".

 private:
  struct Candidate {
    PeerId peer;
    Role role = Role::kWorker;
    int32_t rank = -1;  // The requested rank, or -1; final once complete.
    std::string address;
    MemberProcess process;
    std::shared_ptr<ProcessWatch> watch;
    TimeMs heard = 0;
    bool settled = false;   // Is in the newest view, so Expire() leaves it its place.
    bool returned = false;  // Was lost and came back; this may happen again.
    std::string Name() const;
  };
  uint32_t Quota(Role role) const { return role == Role::kServer ? num_servers_ : num_workers_; }
  std::vector<const Candidate*> Of(Role role) const;
  std::vector<Member> MembersOf(Role role) const;          // By rank.
  const Candidate* OfRank(Role role, int32_t rank) const;  // Null if no candidate has it.
  // Returns an error that the operator has to mend; none if at most the place is taken.
  std::optional<JoinRefused> Mistake(const JoinRequest& request) const;
  std::optional<JoinRefused> Taken(const JoinRequest& request) const;
  void CheckComplete();
  void AssignRanks(Role role);
  std::string MissingOf(Role role) const;

  const RendezvousOptions options_;
  uint32_t num_servers_, num_workers_;  // Numbers at which the cluster is complete.
  bool recorded_ = false;
  std::map<PeerId, Candidate> candidates_;
  std::map<PeerId, Candidate> vacated_;  // Lost members of the newest view.
  bool complete_ = false;
  bool was_complete_ = false;  // Ranks were assigned; a process that asks for one may have lost it.
};

}  // namespace hdps
