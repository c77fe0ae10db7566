// Two ends that send each other parts at the same time: over a transport, and over a bare socket.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "common/status.h"
#include "common/transport.h"

namespace hdps {

// What both ways carry, each.
struct WireLoad {
  size_t part_bytes = size_t{1} << 20;
  size_t parts = 1000;
  size_t window = 8;     // Parts on their way each way, at most (not for a bare socket).
  bool look = false;     // The receiver adds up every word of a part.
  bool one_way = false;  // Only from the first end to the second.
};

// Two transports, each run by a thread of its own while Exchange() lasts.
class TransportEnds {
 public:
  // `kind`: tcp, ipc or inproc. `shared_bytes`: TransportOptions::shared_bytes_per_peer.
  static Result<std::unique_ptr<TransportEnds>> Make(const std::string& kind,
                                                     const std::string& scratch,
                                                     size_t shared_bytes);
  // Bytes a second of both ways together; 0 when something stayed out.
  double Exchange(const WireLoad& load);
  uint64_t bytes_shared() const;

 private:
  std::unique_ptr<Transport> ends_[2];
};

// The same over a connected pair of stream sockets, tcp or unix ("ipc"), one thread an end that
// reads and writes whenever the socket allows it.
Result<double> ExchangeOverSocket(const std::string& kind, const WireLoad& load);

// Microseconds of a round trip of a small frame between two node loops: the median of `count` and
// the 99th in a hundred.
struct RoundTrip {
  double median = 0, p99 = 0;
};
Result<RoundTrip> LoopRoundTrip(const std::string& kind, const std::string& scratch, size_t count);

}  // namespace hdps
