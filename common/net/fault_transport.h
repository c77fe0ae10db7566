// A transport that loses, repeats, reorders and delays frames and cuts links, for tests.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/net/transport.h"
#include "common/platform/fault_window.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/random.h"

namespace hdps {

// Settings of the faults. Probabilities are in [0, 1] and apply to frames that this process sends;
// a cut applies to both directions.
struct FrameFaults {
  uint64_t seed = 1;
  double drop = 0;
  double repeat = 0;   // Probability of sending a frame twice.
  double reorder = 0;  // Probability of sending a frame after the next one to the same peer.
  // Probability of a delay of `late_ms_min` to `late_ms_max`; later frames are not delayed.
  double late = 0;
  int64_t late_ms_min = 0, late_ms_max = 0;

  enum class Whom { kAll, kScheduler, kMembers };  // kMembers is everybody but the scheduler.
  struct Cut {
    Whom whom = Whom::kAll;
    bool in = true, out = true;
    FaultWindow window;
  };
  std::vector<Cut> cuts;

  bool any() const { return drop > 0 || repeat > 0 || reorder > 0 || late > 0 || !cuts.empty(); }
};

struct FaultCounters {
  uint64_t sent = 0, received = 0;  // Sent by the node, and delivered to it.
  uint64_t dropped = 0, repeated = 0, reordered = 0, late = 0;
  uint64_t cut_out = 0, cut_in = 0;
};

// Wraps another transport and injects these faults. The seed and the order of the frames decide
// which frame meets which fault. A transport never repeats or reorders frames and this one does, so
// a node that survives here also survives TCP.
//
// Invariant: every frame given to Send() was dropped or cut, or is sent or held. At most kHeldMax
// frames are held; more are dropped.
class FaultTransport : public Transport {
 public:
  FaultTransport(std::unique_ptr<Transport> transport, FrameFaults faults,
                 std::shared_ptr<MonotonicClock> clock);
  ~FaultTransport() override;  // Logs the counters; held frames are lost.

  Result<std::string> Listen(const std::string& address) override;
  Status Connect(PeerId peer, const std::string& address) override;
  void HangUp(PeerId peer) override { transport_->HangUp(peer); }
  void Send(PeerId to, Frame frame) override;
  bool Receive(int64_t timeout_ms, PeerId* from, Frame* frame) override;
  SectionAllocator* sections() override { return transport_->sections(); }
  void Wake() override { transport_->Wake(); }
  TransportCounters counters() const override { return transport_->counters(); }
  const FaultCounters& faults() const { return counters_; }

 private:
  static constexpr size_t kHeldMax = 1 << 14;
  struct Held {
    PeerId to;
    Frame frame;
    bool overtaken = false;  // A timer: the peer's frame in `overtaken_` is sent now.
  };
  bool Chance(double part) { return random_.Unit() < part; }
  bool IsCut(PeerId peer, bool out);
  void Hold(int64_t due, Held held);
  void SendDue();
  void SendNow(PeerId to, Frame frame);  // Sends the frame unless the link to `to` is cut.

  const std::unique_ptr<Transport> transport_;
  const FrameFaults faults_;
  const std::shared_ptr<MonotonicClock> clock_;
  const int64_t begin_;
  Random random_;
  FaultCounters counters_;
  std::vector<char> told_;             // For each cut: its beginning was logged.
  std::multimap<int64_t, Held> held_;  // By the time at which they are sent.
  std::map<PeerId, Frame> overtaken_;  // Sent after the next frame to the peer, or when due.
};

}  // namespace hdps
