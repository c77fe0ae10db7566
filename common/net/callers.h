// Who has dialed one transport: how a connection names itself, and which one is the peer's.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/net/keys/key_ring.h"
#include "common/net/peer_name.h"

namespace hdps {

// A CallerId is what a connection says of itself before its first frame. Each further dial of the
// same peer counts one up. The proof is of all that stands before it, so that no listener can show
// it to another.
struct CallerId {
  PeerId peer;
  uint64_t dial = 0;
  PeerId listener = {};  // Who is dialed; 0: the caller does not know the number.
  PeerKey key{};         // Of which `peer` is the hash.
  PeerProof proof{};
  friend bool operator==(const CallerId&, const CallerId&) = default;
};
// The id under which `self` speaks to `listener`; without a secret it proves nothing.
CallerId CallerIdOf(const PeerName& self, PeerId listener, uint64_t dial);

// On the wire: 'h', as ids that begin with a zero byte belong to ZeroMQ, and then the fields.
using CallerIdBytes =
    std::array<char, 1 + 3 * sizeof(uint64_t) + sizeof(PeerKey) + sizeof(PeerProof)>;
CallerIdBytes BytesOf(const CallerId& id);
std::optional<CallerId> ParseCallerId(std::span<const char> bytes);

// The connections by which peers are answered.
//
// Invariant: each was proved to be of the owner of the peer's number, and its dial is the newest.
// With keys, all that the peer has shown were of one role.
// At most `callers_max` are remembered; the one that was silent for longest makes room.
class Callers {
 public:
  static constexpr size_t kCallersMax = 8192;
  explicit Callers(PeerId self, size_t callers_max = kCallersMax)
      : self_(self), callers_max_(callers_max) {}

  // Something came by this connection. kInvalidArgument, and why, when it may not be heard. What is
  // proved is looked at once a connection.
  Status Hear(const CallerId& id);
  // Whether a caller speaks with a key of the role with which it was first heard here; true of
  // others.
  bool KeepsRole(PeerId peer, KeyRole role);
  // Null when the peer has not been heard.
  const CallerId* Find(PeerId peer) const;

 private:
  struct Caller {
    CallerId id;
    uint64_t heard = 0;  // The number of the last frame, over all callers.
    std::optional<KeyRole> role = std::nullopt;
  };
  bool IsProved(const CallerId& id);
  void ForgetTheMostSilent();

  const PeerId self_;
  const size_t callers_max_;
  std::map<PeerId, Caller> callers_;
  // Ids whose proofs failed are remembered, as many as callers: checking a proof costs more than a
  // frame.
  std::set<CallerIdBytes> unproved_;
  uint64_t frames_heard_ = 0;
};

}  // namespace hdps
