// The share of a listener's time that guests may take.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/net/keys/key_ring.h"

namespace hdps {

// A guest may ask and is no member of the job: whoever shows a reader's or an admin's key.
inline bool IsGuest(KeyRole role) { return role == KeyRole::kReader || role == KeyRole::kAdmin; }

// A listener that has served a guest is not read for nine times as long as that took, so what else
// guests ask waits in their sockets. A member that speaks at the same listener waits along, so all
// its connections together make it rest no longer than `kRoundNs`: libzmq takes a frame of each in
// turn.
//
// Invariant: guests take a tenth of the time, beyond what is served within `kSlackNs`, unless there
// are so many connections that a round would take longer.
class GuestShare {
 public:
  // What a guest said was taken and done between these times. `connections`: of all listeners.
  void OnServed(int64_t began_ns, int64_t ended_ns, size_t connections) {
    const int64_t round_share = kRoundNs / static_cast<int64_t>(std::max<size_t>(connections, 1));
    const int64_t took = ended_ns - began_ns, rest = std::min(9 * took, round_share);
    free_at_ns_ = std::max(free_at_ns_, began_ns) + took + rest;
    if (free_at_ns_ - ended_ns > kSlackNs) rests_until_ns_ = free_at_ns_;
  }
  bool Rests(int64_t now_ns) const { return now_ns < rests_until_ns_; }
  int64_t rests_until_ns() const { return rests_until_ns_; }

  static constexpr int64_t kSlackNs = 1'000'000;  // As fine as a poll can wait.
  static constexpr int64_t kRoundNs = 500'000'000;

 private:
  int64_t free_at_ns_ = 0, rests_until_ns_ = 0;
};

}  // namespace hdps
