// Limits the share of a listener's time for requests of guests, which are not members of the job.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/net/keys/key_ring.h"

namespace hdps {

// A guest may send requests but is not a member of the job. Holders of a reader's or an admin's key
// are guests.
inline bool IsGuest(KeyRole role) { return role == KeyRole::kReader || role == KeyRole::kAdmin; }

// After a listener has served a guest for some time, it is not read for nine times as long, so
// further requests of guests wait in their sockets. A member that speaks at the same listener waits
// too. libzmq takes frames of all connections in turn, so the pauses of one such round together
// last at most `kRoundNs`.
//
// Invariant: beyond what is served within `kSlackNs`, guests take a tenth of the time, unless there
// are so many connections that a round would take longer than `kRoundNs`.
class GuestShare {
 public:
  // Notes that a frame of a guest was received and served in this interval. `connections` counts
  // those of all listeners.
  void OnServed(int64_t began_ns, int64_t ended_ns, size_t connections) {
    const int64_t round_share = kRoundNs / static_cast<int64_t>(std::max<size_t>(connections, 1));
    const int64_t took = ended_ns - began_ns, rest = std::min(9 * took, round_share);
    free_at_ns_ = std::max(free_at_ns_, began_ns) + took + rest;
    if (free_at_ns_ - ended_ns > kSlackNs) rests_until_ns_ = free_at_ns_;
  }
  bool Rests(int64_t now_ns) const { return now_ns < rests_until_ns_; }
  int64_t rests_until_ns() const { return rests_until_ns_; }

  static constexpr int64_t kSlackNs = 1'000'000;  // The resolution of poll().
  static constexpr int64_t kRoundNs = 500'000'000;

 private:
  int64_t free_at_ns_ = 0, rests_until_ns_ = 0;
};

}  // namespace hdps
