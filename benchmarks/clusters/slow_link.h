// A transport whose frames of one kind take their time, as over a thin link or from a slow disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/net/transport.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {

// Shared by the transports of a run and whoever reads it afterwards.
struct SlowLink {
  double ns_per_byte = 0;   // 0: as fast as the transport below.
  bool pushes_too = false;  // Also what workers push; otherwise only the rows they pull.
  std::atomic<uint64_t> bytes_pulled{0};  // Rows that have left.
};

// Between a server and `below`: pull replies leave, and pushes arrive, one after the other at the
// link's rate; all other frames pass at once. Both outlive it but `below`, which it owns.
std::unique_ptr<Transport> NewSlowTransport(std::unique_ptr<Transport> below, SlowLink& link,
                                            MonotonicClock& clock);

}  // namespace hdps
