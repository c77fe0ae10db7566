// Tracks the peers that dialed one transport, and which connection belongs to each.
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

// The identity that a connection states before its first frame. `dial` increases with each dial of
// the same peer. The proof signs all fields before it, so a listener cannot present it to another
// listener.
struct CallerId {
  PeerId peer;
  uint64_t dial = 0;
  PeerId listener = {};  // The peer that is dialed; 0 if the caller does not know its number.
  PeerKey key{};         // `peer` is the hash of this public key.
  PeerProof proof{};
  friend bool operator==(const CallerId&, const CallerId&) = default;
};
// Returns the id with which `self` dials `listener`. Without a secret, the id proves nothing.
CallerId CallerIdOf(const PeerName& self, PeerId listener, uint64_t dial);

// The wire format: 'h', because ids that begin with a zero byte belong to ZeroMQ, then the fields.
using CallerIdBytes =
    std::array<char, 1 + 3 * sizeof(uint64_t) + sizeof(PeerKey) + sizeof(PeerProof)>;
CallerIdBytes BytesOf(const CallerId& id);
std::optional<CallerId> ParseCallerId(std::span<const char> bytes);

// The connections on which peers that dialed this transport are answered.
//
// Invariant: each connection proved that it belongs to the owner of the peer's number, and its dial
// is the newest that was heard. With keys, all keys that one peer has shown have the same role. At
// most `callers_max` peers are remembered; the one silent for longest makes room.
class Callers {
 public:
  static constexpr size_t kCallersMax = 8192;
  explicit Callers(PeerId self, size_t callers_max = kCallersMax)
      : self_(self), callers_max_(callers_max) {}

  // Notes that a frame arrived on the connection with this id. Errors: kInvalidArgument says why
  // the connection may not speak for the peer. The proof is checked once for each connection.
  Status Hear(const CallerId& id);
  // Is true if `role` is the role of the first key that the peer showed here; also true for peers
  // that have not been heard.
  bool KeepsRole(PeerId peer, KeyRole role);
  // Returns null if the peer has not been heard.
  const CallerId* Find(PeerId peer) const;

 private:
  struct Caller {
    CallerId id;
    uint64_t heard = 0;  // Number of the last frame, counted over all callers.
    std::optional<KeyRole> role = std::nullopt;
  };
  bool IsProved(const CallerId& id);
  void ForgetTheMostSilent();

  const PeerId self_;
  const size_t callers_max_;
  std::map<PeerId, Caller> callers_;
  // Ids whose proof failed, at most `callers_max`. They are remembered because checking a proof
  // costs more than receiving a frame.
  std::set<CallerIdBytes> unproved_;
  uint64_t frames_heard_ = 0;
};

}  // namespace hdps
