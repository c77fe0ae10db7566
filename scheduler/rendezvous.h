// Who may take part: collects servers and workers until the cluster is complete, refuses the rest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/messages.h"

namespace hdps {

struct RendezvousOptions {
  uint32_t num_servers = 1, num_workers = 1;
  uint32_t num_shards = 1;  // At least num_servers.
  uint64_t job_digest = 0;
  uint32_t dead_after_ms = 10000;  // Silence after which a candidate gives up its place.
};

// Invariant: at most num_servers servers and num_workers workers are admitted, no two of a role
// with one rank; once complete, the members and their ranks never change.
class Rendezvous {
 public:
  explicit Rendezvous(const RendezvousOptions& options) : options_(options) {}

  // A join request, new or repeated: nothing when `peer` is one of us, else why not. The message
  // names both sides of whatever does not agree.
  std::optional<JoinRefused> Admit(PeerId peer, const JoinRequest& request, TimeMs now);

  // Before the cluster is complete: frees the places of candidates that went silent; says whose.
  std::vector<std::string> Expire(TimeMs now);
  void ForgiveSilence(TimeMs gap);  // This process itself stood still for so long.

  bool complete() const { return complete_; }
  // Requires: complete(). Ranks that were asked for are kept; the others go by (address or host,
  // peer). Shards are spread over the servers in contiguous, even runs.
  View FormView(ViewId id) const;

  // "1 of 4 workers (worker 3)"; empty when nobody is missing.
  std::string Missing() const;
  // "server 0 (host-a 71), worker (host-b 17)"; "nobody" when there is none.
  std::string Present() const;
  std::vector<PeerId> peers() const;
  // Both require: `peer` was admitted.
  const std::string& HostOf(PeerId peer) const;
  std::string NameOf(PeerId peer) const;  // "worker (host-b 17)"

 private:
  struct Candidate {
    PeerId peer;
    Role role = Role::kWorker;
    int32_t rank = -1;  // Asked for, or -1; final once complete.
    std::string address;
    std::string host;
    TimeMs heard = 0;
    std::string Name() const;
  };
  uint32_t Quota(Role role) const {
    return role == Role::kServer ? options_.num_servers : options_.num_workers;
  }
  std::vector<const Candidate*> Of(Role role) const;
  std::optional<JoinRefused> Object(const JoinRequest& request) const;
  void AssignRanks(Role role);
  std::string MissingOf(Role role) const;

  const RendezvousOptions options_;
  std::map<PeerId, Candidate> candidates_;
  bool complete_ = false;
};

}  // namespace hdps
