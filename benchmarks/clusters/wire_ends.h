// Two ends that send each other parts at the same time: over a transport, and over a bare socket.
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

// What both ways carry, each.
struct WireLoad {
  size_t part_bytes = size_t{1} << 20;
  size_t parts = 1000;
  size_t window = 8;     // Parts on their way each way, at most (not for a bare socket).
  bool look = false;     // The receiver adds up every word of a part.
  bool one_way = false;  // Only from the first end to the second.
  uint64_t round = 0;    // Numbers the exchanges of two ends.
};

// Without keys; over CURVE, as schedulers are dialed; or encrypted by a session, as servers are.
enum class WireKeys { kNone, kCurve, kEncrypted };

// Two transports in two processes: the far one is this program again, as FarEnd().
class TransportEnds {
 public:
  // `kind`: tcp or ipc. `shared_bytes`: TransportOptions::shared_bytes_per_peer.
  static Result<std::unique_ptr<TransportEnds>> Make(const std::string& kind,
                                                     const BenchSetting& setting,
                                                     size_t shared_bytes,
                                                     WireKeys keys = WireKeys::kNone);
  ~TransportEnds();
  // Bytes a second of both ways together; 0 when something stayed out.
  double Exchange(WireLoad load);
  uint64_t bytes_shared() const { return near_->counters().bytes_shared; }  // Sent by the near end.
  double CpuSeconds() const { return ProcessCpuSeconds() + far_->CpuSeconds(); }  // Of both so far.

 private:
  std::unique_ptr<Transport> near_;
  std::unique_ptr<ChildProcess> far_;
  uint64_t rounds_ = 0;
};

// The far end of a TransportEnds that listens at `address`, until that ends it. `keys`: the folder
// with its key; empty: none.
Status FarEnd(const std::string& address, size_t shared_bytes, const std::string& keys);

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
