// Who has dialed one transport: how a connection names itself, and which one is the peer's.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace hdps {

// What a connection says of itself before its first frame. The secret is drawn for one peer that is
// dialed and never leaves the two ends, so that nobody can speak for a process whose number he has
// read in a log. Each further dial of the same peer counts one up.
struct CallerId {
  PeerId peer;
  uint64_t secret = 0;
  uint64_t dial = 0;
  friend bool operator==(const CallerId&, const CallerId&) = default;
};

// On the wire: 'h', as ids that begin with a zero byte belong to ZeroMQ, and the three numbers.
using CallerIdBytes = std::array<char, 1 + 3 * sizeof(uint64_t)>;
CallerIdBytes BytesOf(const CallerId& id);
std::optional<CallerId> ParseCallerId(std::span<const char> bytes);

// The connections by which peers are answered.
//
// Invariant: a peer's secret is that of the first frame heard in its name, and its dial the newest.
// At most `callers_max` are remembered; the one that was silent for longest makes room.
class Callers {
 public:
  static constexpr size_t kCallersMax = 8192;
  explicit Callers(PeerId self, size_t callers_max = kCallersMax)
      : self_(self), callers_max_(callers_max) {}

  // Something came by this connection. kInvalidArgument, and why, when it may not be heard.
  Status Hear(const CallerId& id);
  // Null when the peer has not been heard.
  const CallerId* Find(PeerId peer) const;

 private:
  struct Caller {
    CallerId id;
    uint64_t heard = 0;  // The number of the last frame, over all callers.
  };
  void ForgetTheMostSilent();

  const PeerId self_;
  const size_t callers_max_;
  std::map<PeerId, Caller> callers_;
  uint64_t frames_heard_ = 0;
};

}  // namespace hdps
