// Delays one kind of frames of a transport, like a slow link or disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/net/transport.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {

// Settings and counter of a link, shared by the transports of a run and the reader of the counter.
struct SlowLink {
  double ns_per_byte = 0;   // 0: no delay.
  bool pushes_too = false;  // Also delays the workers' pushes; otherwise only pull replies.
  // Added to the way of every pull reply, however many are on it: the round trip.
  int64_t round_trip_ns = 0;
  std::atomic<uint64_t> bytes_pulled{0};  // Bytes of rows that were sent.
};

// Returns a transport between a server and `below`: pull replies leave and pushes arrive one after
// the other at the link's rate, all other frames without delay. It owns `below`; `link` and `clock`
// must outlive it.
std::unique_ptr<Transport> NewSlowTransport(std::unique_ptr<Transport> below, SlowLink& link,
                                            MonotonicClock& clock);

}  // namespace hdps
