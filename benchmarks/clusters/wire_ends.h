// Exchanges parts between two ends in both directions at once, over a transport or a bare socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "benchmarks/bench.h"
#include "benchmarks/clusters/child_process.h"
#include "common/base/status.h"
#include "common/net/transport.h"

namespace hdps {

// The load of each direction.
struct WireLoad {
  size_t part_bytes = size_t{1} << 20;
  size_t parts = 1000;
  // Parts in flight in each direction, at most (not for a bare socket).
  size_t window = 8;
  bool look = false;     // The receiver sums every word of a part.
  bool one_way = false;  // Only from the first end to the second.
  uint64_t round = 0;    // Number of the exchange between two ends.
};

// Without keys; over CURVE, as schedulers are dialed; or encrypted by a session, as servers are.
enum class WireKeys { kNone, kCurve, kEncrypted };

// Two transports in two processes. The far process is this program again and runs FarEnd().
class TransportEnds {
 public:
  // `kind`: tcp or ipc. `shared_bytes`: see TransportOptions::shared_bytes_per_peer.
  static Result<std::unique_ptr<TransportEnds>> Make(const std::string& kind,
                                                     const BenchSetting& setting,
                                                     size_t shared_bytes,
                                                     WireKeys keys = WireKeys::kNone);
  ~TransportEnds();
  // Returns the bytes per second of both directions together; 0 if a part did not arrive.
  double Exchange(WireLoad load);
  uint64_t bytes_shared() const { return near_->counters().bytes_shared; }  // Sent by the near end.
  // Returns the CPU seconds that both processes have used so far.
  double CpuSeconds() const { return ProcessCpuSeconds() + far_->CpuSeconds(); }

 private:
  std::unique_ptr<Transport> near_;
  std::unique_ptr<ChildProcess> far_;
  uint64_t rounds_ = 0;
};

// Runs the far end of a TransportEnds, listening at `address`, until that one ends it. `keys`: the
// folder with its key; empty: none.
Status FarEnd(const std::string& address, size_t shared_bytes, const std::string& keys);

// Does the same over a connected pair of stream sockets, tcp or unix ("ipc"), with one thread per
// end that reads and writes whenever the socket allows it.
Result<double> ExchangeOverSocket(const std::string& kind, const WireLoad& load);

// Microseconds of a round trip of a small frame between two node loops: median and 99th percentile
// of `count`.
struct RoundTrip {
  double median = 0, p99 = 0;
};
Result<RoundTrip> LoopRoundTrip(const std::string& kind, const std::string& scratch, size_t count);

}  // namespace hdps
